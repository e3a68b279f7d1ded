//! External users: let in by the server's own login, or local in dev mode.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};
use wakeline_web::Identity;

use crate::user::{NewUser, OWN_DOMAIN};

/// The user of requests without a token in dev mode.
pub(super) fn local() -> NewUser {
    NewUser {
        is_superuser: true,
        ..user(derived("local"), &format!("local@{OWN_DOMAIN}"))
    }
}

/// Always the same user for the same subject. Its role decides at each call whether it is a
/// superuser, so the row says that it is not.
pub(super) fn of_identity(identity: &Identity) -> NewUser {
    let Some(subject) = &identity.subject else {
        let role = identity.role.name();
        let id = derived(&format!("role {role}"));
        return user(id, &format!("{role}@role.{OWN_DOMAIN}"));
    };
    let id = match subject.parse::<Uuid>() {
        Ok(id) => id,
        Err(_) => derived(&format!("subject {subject}")),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let name = if !subject.is_empty() && subject.len() <= 64 && subject.chars().all(plain) {
        subject.clone()
    } else {
        id.to_string()
    };
    user(id, &format!("{name}@subject.{OWN_DOMAIN}"))
}

fn user(id: Uuid, email: &str) -> NewUser {
    NewUser {
        id,
        email: email.to_owned(),
        password: None,
        is_superuser: false,
        is_verified: false,
        is_guest: false,
    }
}

fn derived(name: &str) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(format!("wakeline jobs user: {name}")).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeline_web::Role;

    fn of(subject: Option<&str>, role: Role) -> (String, String) {
        let subject = subject.map(str::to_owned);
        let user = of_identity(&Identity { subject, role });
        (user.id.to_string(), user.email)
    }

    #[test]
    fn each_subject_has_its_own_stable_user_id() {
        let users = [
            of(Some("ada"), Role::Admin),
            of(Some("Ada"), Role::Admin),
            of(Some("auth0|5 ä"), Role::ReadWrite),
            of(
                Some("E6F5A4D0-3C2B-4A19-8F7E-6D5C4B3A2910"),
                Role::ReadWrite,
            ),
            of(None, Role::Admin),
            of(None, Role::ReadWrite),
            (local().id.to_string(), local().email),
        ];
        let shown = users.map(|(id, email)| format!("{id} {email}"));
        insta::assert_snapshot!(shown.join("\n"), @"
        0f343391-ad63-8c30-8f75-cbb6fb278078 ada@subject.wakeline.localhost
        cca1e12f-df9c-882a-b91c-2d10ead3d5f2 cca1e12f-df9c-882a-b91c-2d10ead3d5f2@subject.wakeline.localhost
        710ef483-0bd0-806d-bc61-15fc8711d05e 710ef483-0bd0-806d-bc61-15fc8711d05e@subject.wakeline.localhost
        e6f5a4d0-3c2b-4a19-8f7e-6d5c4b3a2910 e6f5a4d0-3c2b-4a19-8f7e-6d5c4b3a2910@subject.wakeline.localhost
        6f6de7fb-f08a-8ba3-bee5-e70bf1f7cac6 admin@role.wakeline.localhost
        ec44b8bf-7f23-8b2d-92d3-d84604e94b70 read-write@role.wakeline.localhost
        51a04c22-30d7-8301-ab2b-534bcbab0e97 local@wakeline.localhost
        ");
    }

    #[test]
    fn the_role_does_not_change_the_user_id() {
        let ada = of(Some("ada"), Role::Admin);
        assert_eq!(ada, of(Some("ada"), Role::ReadOnly));
    }
}
