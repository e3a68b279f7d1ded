//! duroxide's own stress tests, short: every orchestration succeeds.

use std::sync::Arc;

use duroxide::{
    provider_stress_tests::{
        StressTestConfig, StressTestResult,
        large_payload::{LargePayloadConfig, run_large_payload_test_with_config},
        parallel_orchestrations::{ProviderStressFactory, run_parallel_orchestrations_test},
    },
    providers::Provider,
};

use crate::fixture::Fixture;

struct Factory(Fixture);

#[async_trait::async_trait]
impl ProviderStressFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.0.direct().await)
    }

    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig {
            max_concurrent: 10,
            duration_secs: 3,
            ..StressTestConfig::default()
        }
    }
}

fn all_succeeded(result: &StressTestResult) {
    assert!(result.completed > 0, "{result:?}");
    assert_eq!((result.failed, result.completed), (0, result.launched));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput_parallel_orchestrations() {
    let factory = Factory(Fixture::new().await);
    let result = run_parallel_orchestrations_test(&factory).await;
    all_succeeded(&result.expect("it runs"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_payloads() {
    let factory = Factory(Fixture::new().await);
    let config = LargePayloadConfig::default();
    let config = LargePayloadConfig {
        base: StressTestConfig {
            max_concurrent: 2,
            duration_secs: 3,
            ..config.base
        },
        ..config
    };
    let result = run_large_payload_test_with_config(&factory, config).await;
    all_succeeded(&result.expect("it runs"));
}
