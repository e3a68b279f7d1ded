//! The commands that cancel or delete one instance.

use anyhow::{Result, bail};
use clap::Args;
use wakeline_durable::view::ViewError;

use super::{
    FLUSH_TIMEOUT, SchemaArgs,
    text::{plain, print},
};

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    instance: String,
    /// The reason; it becomes the instance's error.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl Cancel {
    pub(crate) async fn run(self) -> Result<()> {
        let view = self.schema.view();
        match view.instance(&self.instance).await {
            Ok(detail) if has_ended(&detail.instance.status) => bail!(
                "instance {:?} has ended already ({}); there is nothing to cancel",
                self.instance,
                detail.instance.status
            ),
            Ok(_) => {}
            // The instance was started and has had no turn yet: the start is in its mailbox.
            Err(ViewError::UnknownInstance(_)) if view.has_messages(&self.instance).await? => {}
            Err(error) => return Err(error.into()),
        }
        let admin = self.schema.admin().await?;
        admin.cancel(&self.instance, &self.reason).await?;
        admin.flush(FLUSH_TIMEOUT).await;
        print(&format!(
            "cancellation of {} is requested; a runtime with its orchestration ends it\n",
            plain(&self.instance)
        ))
    }
}

fn has_ended(status: &str) -> bool {
    matches!(status, "Completed" | "Failed")
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    instance: String,
    /// Delete it even if it, or one of its sub-orchestrations, is running.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    schema: SchemaArgs,
}

impl Delete {
    pub(crate) async fn run(self) -> Result<()> {
        let detail = self.schema.view().instance(&self.instance).await?;
        if let Some(parent) = &detail.instance.parent {
            bail!(
                "instance {:?} is a sub-orchestration of {parent:?}; delete {parent:?}, which deletes both",
                self.instance
            );
        }
        if !self.force && !has_ended(&detail.instance.status) {
            bail!(
                "instance {:?} is running; cancel it first, or delete it with --force",
                self.instance
            );
        }
        let admin = self.schema.admin().await?;
        let deleted = admin.delete(&self.instance, self.force).await?;
        print(&format!(
            "deleted {} instances, {} executions, {} events, {} queued messages and activities\n",
            deleted.instances, deleted.executions, deleted.events, deleted.queued,
        ))
    }
}
