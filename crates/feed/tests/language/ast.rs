//! A specification as upstream's parser has it.

use serde_json::{Value, json};
use wakeline_feed::specification::{
    Component, Condition, Existential, Label, Match, Projection, Role, SingleProjection,
    Specification,
};

pub(crate) fn of(specification: &Specification) -> Value {
    let givens = specification.givens.iter().map(|given| {
        let conditions: Vec<_> = given.conditions.iter().map(existential).collect();
        json!({ "label": label(&given.label), "conditions": conditions })
    });
    json!({
        "given": givens.collect::<Vec<_>>(),
        "matches": matches(&specification.matches),
        "projection": composed(&specification.projection),
    })
}

fn label(label: &Label) -> Value {
    json!({ "name": &*label.name, "type": &*label.kind })
}

fn matches(matches: &[Match]) -> Value {
    let matches = matches.iter().map(|found| {
        let conditions: Vec<_> = found.conditions.iter().map(condition).collect();
        json!({ "unknown": label(&found.unknown), "conditions": conditions })
    });
    matches.collect()
}

fn condition(condition: &Condition) -> Value {
    match condition {
        Condition::Existential(condition) => existential(condition),
        Condition::Path(path) => json!({
            "type": "path",
            "rolesLeft": roles(&path.left),
            "labelRight": &*path.right_label,
            "rolesRight": roles(&path.right),
        }),
    }
}

fn existential(condition: &Existential) -> Value {
    json!({
        "type": "existential",
        "exists": condition.exists,
        "matches": matches(&condition.matches),
    })
}

fn roles(roles: &[Role]) -> Value {
    let roles = roles
        .iter()
        .map(|role| json!({ "name": &*role.name, "predecessorType": &*role.kind }));
    roles.collect()
}

fn composed(projection: &Projection) -> Value {
    let components = match projection {
        Projection::Single(value) => return single(value),
        Projection::Composite(components) => components,
    };
    let components = components.iter().map(|(name, component)| {
        let mut value = match component {
            Component::Single(value) => single(value),
            Component::Collection {
                matches: found,
                projection: inner,
            } => json!({
                "type": "specification",
                "matches": matches(found),
                "projection": composed(inner),
            }),
        };
        value["name"] = json!(&**name);
        value
    });
    json!({ "type": "composite", "components": components.collect::<Vec<_>>() })
}

fn single(single: &SingleProjection) -> Value {
    match single {
        SingleProjection::Field { label, field } => {
            json!({ "type": "field", "label": &**label, "field": &**field })
        }
        SingleProjection::Hash(label) => json!({ "type": "hash", "label": &**label }),
        SingleProjection::Time(label) => json!({ "type": "time", "label": &**label }),
        SingleProjection::Fact(label) => json!({ "type": "fact", "label": &**label }),
    }
}
