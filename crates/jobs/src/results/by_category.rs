//! The backend of each category's answers.

use std::sync::Arc;

use super::ResultBackend;

#[derive(Clone, Debug)]
pub struct ResultsByCategory {
    pub default: Arc<dyn ResultBackend>,
    pub by_category: Vec<(String, Arc<dyn ResultBackend>)>,
}

impl ResultsByCategory {
    #[must_use]
    pub fn of(&self, category: &str) -> &Arc<dyn ResultBackend> {
        self.by_category
            .iter()
            .find(|(name, _)| name == category)
            .map_or(&self.default, |(_, results)| results)
    }

    /// Every backend once, for the sweep.
    #[must_use]
    pub fn backends(&self) -> Vec<Arc<dyn ResultBackend>> {
        let mut places = vec![self.default.clone()];
        for (_, results) in &self.by_category {
            if !places.iter().any(|known| Arc::ptr_eq(known, results)) {
                places.push(results.clone());
            }
        }
        places
    }
}
