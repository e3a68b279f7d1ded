//! Values and rows of the store's own as those of PostgreSQL.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::store::{Row, Value};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Value {
    fn kind(&self) -> Type {
        match self {
            Self::Number(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Id(_) => Type::UUID,
            Self::Flag(_) => Type::BOOL,
            Self::Bytes(_) => Type::BYTEA,
            Self::Texts(_) | Self::OptionalTexts(_) => Type::TEXT_ARRAY,
            Self::Numbers(_) => Type::INT8_ARRAY,
            Self::Ids(_) => Type::UUID_ARRAY,
            Self::BytesList(_) => Type::BYTEA_ARRAY,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        match self {
            Self::Number(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Id(id) => id.to_sql(kind, out),
            Self::Flag(flag) => flag.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.as_deref().to_sql(kind, out),
            Self::Texts(texts) => texts.to_sql(kind, out),
            Self::OptionalTexts(texts) => texts.to_sql(kind, out),
            Self::Numbers(numbers) => numbers.to_sql(kind, out),
            Self::Ids(ids) => ids.to_sql(kind, out),
            Self::BytesList(list) => {
                let list: Vec<&[u8]> = list.iter().map(|bytes| &bytes[..]).collect();
                list.to_sql(kind, out)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

pub(super) fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let typed = |value| (value as &(dyn ToSql + Sync), Value::kind(value));
    values.iter().map(typed).collect()
}

pub(super) fn rows(rows: &[tokio_postgres::Row]) -> Vec<Row> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let columns = first.columns().iter();
    let names: Arc<[String]> = columns.map(|column| column.name().to_owned()).collect();
    let values = |row: &tokio_postgres::Row| (0..row.len()).map(|at| value(row, at)).collect();
    rows.iter()
        .map(|row| Row {
            names: names.clone(),
            values: values(row),
        })
        .collect()
}

fn value(row: &tokio_postgres::Row, column: usize) -> Value {
    match *row.columns()[column].type_() {
        Type::INT2 => Value::Number(row.get::<_, Option<i16>>(column).map(i64::from)),
        Type::INT4 => Value::Number(row.get::<_, Option<i32>>(column).map(i64::from)),
        Type::TEXT => Value::Text(row.get(column)),
        Type::UUID => Value::Id(row.get(column)),
        Type::UUID_ARRAY => Value::Ids(row.get::<_, Option<_>>(column).unwrap_or_default()),
        Type::BOOL => Value::Flag(row.get(column)),
        Type::BYTEA => {
            let bytes: Option<&[u8]> = row.get(column);
            Value::Bytes(bytes.map(Bytes::copy_from_slice))
        }
        _ => Value::Number(row.get(column)),
    }
}
