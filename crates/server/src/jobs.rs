//! The jobs and providers door: from the configuration to a running door.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use http::HeaderMap;
use wakeline_bus::Bus;
use wakeline_jobs::{
    frame::FrameLimits,
    frames::{self, Frames},
    internal::{
        Registry,
        filesystem::{self, FilesystemRead},
    },
    results::{self, by_category::ResultsByCategory, files::Files, redis::Redis},
    service::{Dependencies, Jobs, Settings},
    socket::{self, Service, Sockets},
    users::{self, Users},
};
use wakeline_wake::Engine;
use wakeline_web::Identity;

use crate::{
    config::{Config, ResultBackend, TimeoutStatus},
    stores::JobsStores,
};

/// The door, and what is mounted of it.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) socket_io: Service,
}

impl Door {
    pub(crate) async fn open(
        config: &Config,
        stores: JobsStores,
        engine: Arc<Engine>,
        bus: Arc<Bus>,
    ) -> Result<Self> {
        let users = Users::open(stores.users.clone(), bus.clone(), user_settings(config))
            .await
            .context("jobs: the users")?;
        let users = Arc::new(users);
        let (sockets, socket_io) = Sockets::new(&socket_limits(config));
        let dependencies = Dependencies {
            store: stores.store.clone(),
            engine,
            bus: bus.clone(),
            sockets: sockets.clone(),
            results: results(config, &stores, &bus)?,
            users: users.clone(),
            internal: internal(config)?,
        };
        let jobs = Jobs::new(dependencies, settings(config));
        let ports = Arc::new(jobs.clone());
        let frames = Frames::new(
            stores.frames,
            bus,
            ports.clone(),
            ports.clone(),
            ports.clone(),
            frame_limits(config),
        );
        jobs.has_frames(frames.clone());
        users.set_worker_remover(ports.clone());
        sockets.serve(ports);
        // Whom the server's own providers and worker belong to.
        let server = users
            .identify(&HeaderMap::new(), Some(&Identity::ANONYMOUS))
            .await
            .context("jobs: the server's own user")?;
        tokio::spawn(jobs.clone().sweep());
        tokio::spawn(jobs.clone().sweep_results());
        tokio::spawn(users.sweep_guests());
        tokio::spawn(jobs.clone().run_internals(server));
        Ok(Self {
            jobs,
            frames,
            sockets,
            socket_io,
        })
    }
}

fn frame_limits(config: &Config) -> frames::Limits {
    let jobs = &config.jobs;
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    frames::Limits {
        frame: FrameLimits {
            bytes: short(jobs.frame_bytes),
            keys: short(jobs.frame_keys),
            ..FrameLimits::default()
        },
        request: jobs.request_frames,
        room: signed(jobs.room_frames),
        copy: signed(jobs.room_copy),
        messages: signed(jobs.chat_messages),
        asked: jobs.asked_frames,
        asked_at_once: jobs.asked_at_once,
        asked_bytes: jobs.asked_bytes as u64,
        wait: jobs.read_hold,
        max_wait: jobs.max_read_hold,
    }
}

fn user_settings(config: &Config) -> users::Settings {
    let jobs = &config.jobs;
    users::Settings {
        secret: jobs
            .secret
            .as_ref()
            .map(|secret| secret.expose().to_owned()),
        token_lifetime: jobs.token_lifetime,
        is_dev: config.listen.is_loopback()
            && !config.asks_for_login()
            && jobs.admin_email.is_none(),
        admin: jobs
            .admin_email
            .clone()
            .zip(jobs.admin_password.as_ref())
            .map(|(email, password)| (email, password.expose().to_owned())),
        min_password: config.min_password(),
        guests: jobs.guests,
        registration: jobs.registration,
        keep_guests: jobs.keep_guests,
        open_lists: jobs.open_lists,
    }
}

fn socket_limits(config: &Config) -> socket::Limits {
    socket::Limits {
        connections: config.jobs.max_sockets,
        max_payload: 1_000_000,
        buffer: config.jobs.socket_buffer,
        ping_interval: config.jobs.ping_interval,
        ping_timeout: config.jobs.ping_timeout,
    }
}

fn settings(config: &Config) -> Settings {
    let jobs = &config.jobs;
    Settings {
        categories: jobs.categories.clone(),
        provider_categories: jobs.provider_categories.clone(),
        worker_timeout: jobs.worker_timeout,
        internal_timeout: jobs.internal_timeout,
        internal_tasks: jobs.internal_tasks,
        keep_tasks: jobs.keep_tasks,
        result_ttl: jobs.result_ttl,
        error_ttl: jobs.error_ttl,
        inflight_ttl: jobs.inflight_ttl,
        read_hold: jobs.read_hold,
        max_read_hold: jobs.max_read_hold,
        max_task_hold: jobs.max_task_hold,
        timeout_is_not_found: jobs.timeout_status == TimeoutStatus::NotFound,
        require_workers: jobs.require_workers,
        max_result: jobs.max_result as u64,
        upload_memory: jobs.upload_memory as u64,
        upload_patience: config.http.body_timeout,
        max_schema: jobs.max_schema,
        max_retries: i32::try_from(jobs.max_retries).unwrap_or(i32::MAX),
    }
}

fn results(config: &Config, stores: &JobsStores, bus: &Arc<Bus>) -> Result<ResultsByCategory> {
    let jobs = &config.jobs;
    let redis: Option<Arc<dyn results::ResultBackend>> = if jobs.keeps_in(ResultBackend::Redis) {
        let url = jobs.redis.as_ref().or(config.bus.url.as_ref());
        let url = url.context("jobs.redis: it is not said where Redis is")?;
        let redis = Redis::new(url.expose(), &jobs.redis_prefix).context("jobs.redis")?;
        Some(Arc::new(redis))
    } else {
        None
    };
    let files: Option<Arc<dyn results::ResultBackend>> = if jobs.keeps_in(ResultBackend::Files) {
        let directory: PathBuf = config.data.join("results");
        let marks = stores.results.clone();
        let files = Files::open(&directory, jobs.files_size as u64, marks, bus.clone());
        let files = files.with_context(|| format!("jobs.results: {}", directory.display()))?;
        Some(Arc::new(files))
    } else {
        None
    };
    let place = |place: ResultBackend| match place {
        ResultBackend::Store => stores.results.clone(),
        ResultBackend::Redis => redis.clone().unwrap_or(stores.results.clone()),
        ResultBackend::Files => files.clone().unwrap_or(stores.results.clone()),
    };
    Ok(ResultsByCategory {
        default: place(jobs.results),
        by_category: jobs
            .result_backends()
            .into_iter()
            .flatten()
            .map(|(category, known)| (category, place(known)))
            .collect(),
    })
}

fn internal(config: &Config) -> Result<Registry> {
    let jobs = &config.jobs;
    if jobs.filesystem_roots.is_empty() {
        return Ok(Registry::new());
    }
    let roots = jobs.filesystem_roots.iter().map(PathBuf::from).collect();
    let mut read = FilesystemRead::new(roots, filesystem::Limits::default())
        .context("jobs.filesystem_roots")?;
    if jobs.filesystem_for_everybody {
        read = read.for_everybody();
    }
    Ok(Registry::new().with_provider(Arc::new(read))?)
}
