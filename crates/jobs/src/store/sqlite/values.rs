//! Values of the store's own as those of SQLite.

use bytes::Bytes;
use rusqlite::{
    Result, ToSql,
    types::{FromSqlError, ToSqlOutput, ValueRef},
};

use crate::store::Value;

impl ToSql for Value {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Self::Number(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
            Self::Id(id) => id.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
            Self::Bytes(None) | Self::Texts(None) => Ok(ToSqlOutput::from(rusqlite::types::Null)),
            Self::Bytes(Some(bytes)) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
            Self::Texts(Some(texts)) => Ok(serde_json::json!(texts).to_string().into()),
            Self::Numbers(_) | Self::Ids(_) | Self::BytesList(_) | Self::OptionalTexts(_) => {
                unreachable!("SQLite is given no lists but of texts")
            }
        }
    }
}

pub(super) fn read(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Number(None),
        ValueRef::Integer(number) => Value::Number(Some(number)),
        ValueRef::Text(_) => Value::Text(Some(value.as_str()?.to_owned())),
        ValueRef::Blob(bytes) => Value::Bytes(Some(Bytes::copy_from_slice(bytes))),
        ValueRef::Real(_) => return Err(FromSqlError::InvalidType.into()),
    })
}
