//! The kinds of problem that callers of this door read, as zndraw-joblib names them.

use http::StatusCode;

/// A kind of problem. Its name is what clients branch on.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub status: StatusCode,
    /// For people, under `/v1/problems/{name}`.
    pub about: &'static str,
}

macro_rules! kinds {
    ($( $constant:ident = $name:literal, $status:ident, $about:literal; )*) => {
        $(
            pub const $constant: Kind = Kind {
                name: $name,
                status: StatusCode::$status,
                about: $about,
            };
        )*
        /// All of them.
        pub const ALL: &[&Kind] = &[$( &$constant ),*];
    };
}

kinds! {
    JOB_NOT_FOUND = "job-not-found", NOT_FOUND, "There is no job of this name, or the name does not have the form room:category:name.";
    SCHEMA_CONFLICT = "schema-conflict", CONFLICT, "A job of this name is registered with another schema.";
    INVALID_CATEGORY = "invalid-category", BAD_REQUEST, "The category is not one that this server allows.";
    WORKER_NOT_FOUND = "worker-not-found", NOT_FOUND, "There is no such worker, or it is another user's.";
    TASK_NOT_FOUND = "task-not-found", NOT_FOUND, "There is no such task.";
    INVALID_TASK_TRANSITION = "invalid-task-transition", CONFLICT, "The task's status does not allow the requested one.";
    NOT_THE_WORKERS_TASK = "not-the-workers-task", CONFLICT, "The worker named in the request does not have this task, or has lost it. Do not work on it.";
    INVALID_ROOM_ID = "invalid-room-id", BAD_REQUEST, "A room's name has no @ and no colon.";
    FORBIDDEN = "forbidden", FORBIDDEN, "This belongs to another user, or needs a superuser.";
    INTERNAL_JOB_NOT_CONFIGURED = "internal-job-not-configured", SERVICE_UNAVAILABLE, "This server has nothing that runs this job or provider of @internal.";
    PROVIDER_NOT_FOUND = "provider-not-found", NOT_FOUND, "There is no such provider, or it is not offered to this room.";
    PROVIDER_TIMEOUT = "provider-timeout", GATEWAY_TIMEOUT, "The provider did not answer in time. Asking again is safe. The status is 404 with jobs.timeout_status = 404.";
    NO_WORKERS_AVAILABLE = "no-workers-available", CONFLICT, "The job has no workers at the moment (jobs.require_workers).";
    PROVIDER_EXECUTION_FAILED = "provider-execution-failed", BAD_REQUEST, "The provider could not answer; the detail says why.";
    ROOM_NOT_FOUND = "room-not-found", NOT_FOUND, "There is no such room.";
    ROOM_READ_ONLY = "room-read-only", CONFLICT, "The room's frames come from a provider.";
    ROOM_LOCKED = "room-locked", LOCKED, "The room is locked, and only the user who locked it or a superuser changes it.";
    PROGRESS_NOT_FOUND = "progress-not-found", NOT_FOUND, "The room has no such progress tracker: it has ended, or was not updated for an hour.";
    FRAME_NOT_FOUND = "frame-not-found", NOT_FOUND, "The room has no frame of this number.";
    BODY_TOO_LARGE = "body-too-large", PAYLOAD_TOO_LARGE, "The body is longer than this route takes; the detail has the limit.";
    TOO_MANY_FAILED_LOGINS = "too-many-failed-logins", TOO_MANY_REQUESTS, "Logins of this account failed too often from this address. Try again after Retry-After, in seconds; until then no password is checked.";
    UNPROCESSABLE_CONTENT = "unprocessable-content", UNPROCESSABLE_ENTITY, "The request is not valid; the detail names the field.";
}

/// The same kind under another status, where the settings say so: it has one description.
pub const PROVIDER_TIMEOUT_AS_NOT_FOUND: Kind = Kind {
    status: StatusCode::NOT_FOUND,
    ..PROVIDER_TIMEOUT
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_kind_is_listed_once() {
        let names: BTreeSet<&str> = ALL.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(names.contains(PROVIDER_TIMEOUT_AS_NOT_FOUND.name));
    }
}
