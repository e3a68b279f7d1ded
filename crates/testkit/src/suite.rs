/// One suite for both databases: a test for each case on SQLite, and one on PostgreSQL. A case is
/// `async fn name(fixture: Fixture)` in the module that is named before it, and
/// `Fixture::open(DatabaseKind)` makes what it is given.
///
/// The cases are listed once, so a database cannot forget one; a case that is not listed is dead
/// code, which the build reports.
#[macro_export]
macro_rules! conformance {
    ($fixture:ty; $($module:ident: $($case:ident),+ $(,)?;)+) => {
        $crate::conformance! { @on sqlite Sqlite $fixture; $($module: $($case),+;)+ }
        $crate::conformance! { @on postgres Postgres $fixture; $($module: $($case),+;)+ }
    };
    (@on $name:ident $kind:ident $fixture:ty; $($module:ident: $($case:ident),+;)+) => {
        mod $name { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = <$fixture>::open($crate::DatabaseKind::$kind).await;
                super::super::$module::$case(fixture).await;
            }
        )+ })+ }
    };
}
