//! From a token's claims to a role.

use serde_json::{Map, Value};
use wakeline_web::Role;

use crate::config;

type Claims = Map<String, Value>;

#[derive(Debug)]
pub(super) struct Roles {
    /// The claims that may have the role, and the issuer's name of each role.
    claims: [String; 2],
    names: [(Role, String); 4],
}

impl Roles {
    pub(super) fn new(config: &config::Jwt) -> Self {
        Self {
            claims: [config.role_claim.clone(), config.roles_claim.clone()],
            names: [
                (Role::Admin, config.role_admin.clone()),
                (Role::ReadWrite, config.role_read_write.clone()),
                (Role::ReadOnly, config.role_read_only.clone()),
                (Role::WriteOnly, config.role_write_only.clone()),
            ],
        }
    }

    /// Of several, the first in the order of [`Role::ALL`].
    pub(super) fn find(&self, claims: &Claims) -> Option<Role> {
        let values: Vec<&str> = self
            .claims
            .iter()
            .filter_map(|claim| claim_at(claims, claim))
            .flat_map(texts)
            .collect();
        self.names
            .iter()
            .find(|(_, name)| values.contains(&name.as_str()))
            .map(|(role, _)| *role)
    }

    /// What is wrong with a token without any of them.
    pub(super) fn refusal(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|(_, name)| name.as_str()).collect();
        let [one, other] = &self.claims;
        format!(
            "the token has none of the roles {} (claims {one} and {other})",
            names.join(", ")
        )
    }
}

/// By its whole name first: some issuers use URLs as names, which have dots.
fn claim_at<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (object, rest) = name.split_once('.')?;
    claim_at(claims.get(object)?.as_object()?, rest)
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    fn find(roles: &Roles, claims: Value) -> Option<Role> {
        let Value::Object(claims) = claims else {
            panic!("claims are an object")
        };
        roles.find(&claims)
    }

    #[test]
    fn a_role_is_one_text_or_in_a_list() {
        let roles = Roles::new(&Config::default().jwt);
        for (claims, role) in [
            (json!({"role": "admin"}), Some(Role::Admin)),
            (json!({"role": "read-write"}), Some(Role::ReadWrite)),
            (json!({"role": "read-only"}), Some(Role::ReadOnly)),
            (json!({"role": "write-only"}), Some(Role::WriteOnly)),
            (json!({"roles": ["x", "write-only"]}), Some(Role::WriteOnly)),
            (json!({"role": ["read-only"]}), Some(Role::ReadOnly)),
            (json!({"roles": "read-only"}), Some(Role::ReadOnly)),
            // The role with more rights, in either claim.
            (
                json!({"role": "read-only", "roles": ["read-write"]}),
                Some(Role::ReadWrite),
            ),
            (json!({"role": "Admin"}), None),
            (json!({"role": 1, "roles": [null, {}]}), None),
            (json!({"roles": {"admin": true}}), None),
            (json!({}), None),
        ] {
            assert_eq!(find(&roles, claims.clone()), role, "{claims}");
        }
    }

    #[test]
    fn the_issuer_has_its_own_names_for_claims_and_roles() {
        let mut config = Config::default().jwt;
        config.role_claim = "https://example.org/role".to_owned();
        config.roles_claim = "realm_access.roles".to_owned();
        config.role_write_only = "producer".to_owned();
        let roles = Roles::new(&config);
        let producer = Some(Role::WriteOnly);
        let named = json!({"https://example.org/role": "producer"});
        assert_eq!(find(&roles, named), producer);
        let nested = json!({"realm_access": {"roles": ["producer"]}});
        assert_eq!(find(&roles, nested), producer);
        assert_eq!(find(&roles, json!({"role": "write-only"})), None);
        insta::assert_snapshot!(roles.refusal(), @"the token has none of the roles admin, read-write, read-only, producer (claims https://example.org/role and realm_access.roles)");
    }
}
