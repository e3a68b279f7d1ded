//! Which place a category's answers have.

use std::sync::Arc;

use super::Results;

#[derive(Clone, Debug)]
pub struct Choice {
    pub default: Arc<dyn Results>,
    pub by_category: Vec<(String, Arc<dyn Results>)>,
}

impl Choice {
    #[must_use]
    pub fn of(&self, category: &str) -> &Arc<dyn Results> {
        self.by_category
            .iter()
            .find(|(name, _)| name == category)
            .map_or(&self.default, |(_, results)| results)
    }

    /// Every place once, for whoever sweeps.
    #[must_use]
    pub fn places(&self) -> Vec<Arc<dyn Results>> {
        let mut places = vec![self.default.clone()];
        for (_, results) in &self.by_category {
            if !places.iter().any(|known| Arc::ptr_eq(known, results)) {
                places.push(results.clone());
            }
        }
        places
    }
}
