//! Policy files.

use wakeline_feed::{policy::Policies, policy_file::PolicyFile};

use super::specification::check_place;

pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    match PolicyFile::parse(text) {
        Ok(file) => {
            if let Err(invalid) = Policies::new(&file) {
                assert!(!invalid.0.is_empty());
            }
        }
        Err(error) => check_place(&error, text),
    }
}
