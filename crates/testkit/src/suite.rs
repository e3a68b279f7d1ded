use crate::DatabaseKind;

/// What a case is given.
pub trait Fixture: Sized {
    fn open(kind: DatabaseKind) -> impl Future<Output = Self>;
}

/// Runs a case with what it asks for by the type of its argument.
pub async fn run_case<F: Fixture, C: Future<Output = ()>>(
    kind: DatabaseKind,
    case: impl FnOnce(F) -> C,
) {
    case(F::open(kind).await).await;
}

/// One suite for both databases: a test for each case on SQLite, and one on PostgreSQL. A case is
/// `async fn name(fixture: Fixture)` in the module that is named before it, and
/// `Fixture::open(DatabaseKind)` makes what it is given. Where cases are given different things,
/// the suite names no type, and each case gets the [`Fixture`] of its argument's type.
///
/// The cases are listed once, so a database cannot forget one; a case that is not listed is dead
/// code, which the build reports.
#[macro_export]
macro_rules! conformance {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        $crate::conformance! { @each sqlite Sqlite; $($module: $($case),+;)+ }
        $crate::conformance! { @each postgres Postgres; $($module: $($case),+;)+ }
    };
    ($fixture:ty; $($module:ident: $($case:ident),+ $(,)?;)+) => {
        $crate::conformance! { @on sqlite Sqlite $fixture; $($module: $($case),+;)+ }
        $crate::conformance! { @on postgres Postgres $fixture; $($module: $($case),+;)+ }
    };
    (@each $name:ident $kind:ident; $($module:ident: $($case:ident),+;)+) => {
        mod $name { $(mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::run_case($crate::DatabaseKind::$kind, super::super::$module::$case).await;
            }
        )+ })+ }
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
