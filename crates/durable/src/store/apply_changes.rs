//! The function `apply_changes` of the schema: its parameters, and the wakes for the mailboxes that it
//! has filled. See `sql/002_changes.sql`.

use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Wakes;

use super::Parameter;
use crate::bus;

/// The kind of its statements in the metrics.
pub(super) const KIND: &str = "durable_apply_changes";

/// Calls it in `schema`, which is quoted or stands for the schema.
pub(super) fn statement(schema: &str) -> String {
    let count = Columns::default().parameters().len();
    let parameters: Vec<String> = (1..=count).map(|n| format!("${n}")).collect();
    let parameters = parameters.join(", ");
    format!("SELECT * FROM {schema}.apply_changes({parameters})")
}

/// Wakes the dispatchers for the mailboxes that can be fetched now; `row` is its answer.
pub(super) fn mailbox_wakes(schema: &str, row: &Row) -> Wakes {
    let ready: i32 = row.get("ready_mailboxes");
    if ready > 0 {
        bus::wake_orchestrations(schema, ready.unsigned_abs()).into()
    } else {
        Wakes::none()
    }
}

/// A message for an orchestration.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) instance: String,
    pub(crate) item: String,
    pub(crate) after_us: Option<i64>,
    pub(crate) at_ms: Option<i64>,
}

/// The parameters of `apply_changes` in their order, one list per column.
macro_rules! columns {
    ($a:lifetime: $($column:ident: $value:ty = $kind:ident,)+) => {
        #[derive(Default)]
        pub(super) struct Columns<$a> { $(pub(super) $column: Vec<$value>,)+ }

        impl Columns<'_> {
            pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
                vec![$((&self.$column as _, Type::$kind)),+]
            }
        }
    };
}

columns! { 'a:
    t_instance: &'a str = TEXT_ARRAY,
    t_token: Uuid = UUID_ARRAY,
    t_is_repeat: bool = BOOL_ARRAY,
    t_execution: i64 = INT8_ARRAY,
    t_name: Option<&'a str> = TEXT_ARRAY,
    t_version: Option<&'a str> = TEXT_ARRAY,
    t_parent: Option<&'a str> = TEXT_ARRAY,
    t_pinned: Option<i64> = INT8_ARRAY,
    t_status: Option<&'a str> = TEXT_ARRAY,
    t_output: Option<&'a [u8]> = BYTEA_ARRAY,
    t_status_change: i16 = INT2_ARRAY,
    t_custom_status: Option<&'a [u8]> = BYTEA_ARRAY,
    t_last_event: Option<i64> = INT8_ARRAY,
    t_cached_by: Option<i64> = INT8_ARRAY,
    t_incarnation: i64 = INT8_ARRAY,
    e_turn: i32 = INT4_ARRAY,
    e_number: i64 = INT8_ARRAY,
    e_data: &'a str = TEXT_ARRAY,
    k_turn: i32 = INT4_ARRAY,
    k_key: Option<&'a str> = TEXT_ARRAY,
    k_value: Option<&'a [u8]> = BYTEA_ARRAY,
    k_updated_ms: i64 = INT8_ARRAY,
    f_activity: i64 = INT8_ARRAY,
    f_token: Uuid = UUID_ARRAY,
    f_is_repeat: bool = BOOL_ARRAY,
    m_change: i32 = INT4_ARRAY,
    m_instance: &'a str = TEXT_ARRAY,
    m_item: &'a str = TEXT_ARRAY,
    m_after_us: Option<i64> = INT8_ARRAY,
    m_at_ms: Option<i64> = INT8_ARRAY,
    a_turn: i32 = INT4_ARRAY,
    a_instance: &'a str = TEXT_ARRAY,
    a_execution: i64 = INT8_ARRAY,
    a_number: i64 = INT8_ARRAY,
    a_session: Option<&'a str> = TEXT_ARRAY,
    a_tag: &'a str = TEXT_ARRAY,
    a_item: &'a str = TEXT_ARRAY,
    c_turn: i32 = INT4_ARRAY,
    c_instance: &'a str = TEXT_ARRAY,
    c_execution: i64 = INT8_ARRAY,
    c_number: i64 = INT8_ARRAY,
}

impl<'a> Columns<'a> {
    /// `change` is the parameter `m_change`.
    pub(super) fn add_message(&mut self, change: i32, message: &'a Message) {
        self.m_change.push(change);
        self.m_instance.push(&message.instance);
        self.m_item.push(&message.item);
        self.m_after_us.push(message.after_us);
        self.m_at_ms.push(message.at_ms);
    }
}
