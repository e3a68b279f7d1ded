//! Statements of one connection that are sent in one go, without waiting for each other's answers.
//! PostgreSQL runs them in the order in which they were sent.

use std::task::Poll;

use futures_util::{FutureExt, future::BoxFuture, poll};

/// Sends a statement now; the future that comes back waits for its answer. The driver puts a
/// statement into the connection's line when its future is polled for the first time, so that is
/// done here: statements that are sent in an order run in this order, whatever the order in which
/// their answers are awaited.
pub async fn send<'a, T: Send + 'a>(
    statement: impl Future<Output = T> + Send + 'a,
) -> BoxFuture<'a, T> {
    let mut statement = statement.boxed();
    match poll!(&mut statement) {
        Poll::Ready(answer) => std::future::ready(answer).boxed(),
        Poll::Pending => statement,
    }
}

/// Sends several statements in the order in which they are written, then awaits their answers: all
/// of them as a tuple, or the first error. A transaction can rely on the order: locks first, the
/// commit last.
#[macro_export]
macro_rules! pipelined {
    (@send [$($sent:ident)*]) => {
        async { Ok::<_, $crate::postgres::DriverError>(($($sent.await?),*)) }.await
    };
    (@send [$($sent:ident)*] $next:expr, $($rest:expr,)*) => {{
        // What the statement borrows lives in the block, for as long as the statement.
        let sent = $crate::postgres::send(async { $next.await }).await;
        $crate::pipelined!(@send [$($sent)* sent] $($rest,)*)
    }};
    ($($statement:expr),+ $(,)?) => {
        $crate::pipelined!(@send [] $($statement,)+)
    };
}
