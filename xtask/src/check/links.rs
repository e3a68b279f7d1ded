//! Every relative link in the documents leads to a file, and to a heading
//! where it names one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use super::sources;

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for document in sources::markdown(root)? {
        for (line, target) in links(&document.text) {
            if let Err(problem) = follow(root, &document.path, &target) {
                failures.push(format!("{}:{line}: {target}: {problem}", document.path));
            }
        }
    }
    Ok(failures)
}

fn follow(root: &Path, document: &str, target: &str) -> Result<(), &'static str> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file.strip_prefix('/') {
        _ if file.is_empty() => PathBuf::from(document),
        Some(from_root) => PathBuf::from(from_root),
        None => Path::new(document).with_file_name("").join(file),
    };
    let path = root.join(normal(&path).ok_or("leaves the repository")?);
    if !path.exists() {
        return Err("no such file");
    }
    // Anchors into sources are line numbers, which no check can keep true.
    if anchor.is_empty() || path.extension().is_none_or(|kind| kind != "md") {
        return Ok(());
    }
    let text = fs::read_to_string(&path).map_err(|_| "cannot be read")?;
    if anchors(&text).iter().any(|found| found == anchor) {
        return Ok(());
    }
    Err("no such heading")
}

fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !parts.pop() => return None,
            Component::Normal(name) => parts.push(name),
            _ => {}
        }
    }
    Some(parts)
}

/// Relative targets with their line numbers: `[text](target)` and
/// `[name]: target`.
fn links(markdown: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(markdown) {
        let line = without_code(line);
        let inline = line.match_indices("](").filter_map(|(at, open)| {
            let rest = &line[at + open.len()..];
            rest.split([')', ' ']).next()
        });
        let definition = line
            .starts_with('[')
            .then(|| line.split_once("]: "))
            .flatten()
            .and_then(|(_, target)| target.split_whitespace().next());
        for target in inline.chain(definition) {
            let target = target.trim_matches(['<', '>']);
            if !target.is_empty() && !is_external(target) {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The lines outside of fenced code.
fn prose(markdown: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    markdown.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

fn without_code(line: &str) -> String {
    // Every second part lies between backquotes; an empty pair keeps `[x](y)` apart.
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

fn is_external(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or_default();
    scheme.contains(':')
}

/// The names GitHub gives to headings, and explicit `<a id="…">`.
fn anchors(markdown: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(markdown) {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let slug = slug(heading.trim());
            let earlier = seen.entry(slug.clone()).or_default();
            anchors.push(match *earlier {
                0 => slug,
                again => format!("{slug}-{again}"),
            });
            *earlier += 1;
        }
        for mark in ["<a id=\"", "<a name=\""] {
            let named = line.split(mark).skip(1);
            anchors.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_are_found_and_others_are_not() {
        let text = "See [a](docs/a.md#top \"title\") and [b](https://b.example), ![c](c.png).\n\
                    `[code](none.md)` [mail](mailto:x@y)\n\
                    ```\n[fenced](none.md)\n```\n\
                    [d]: ../d.md\n\
                    [`e`](e.rs)\n";
        let expected = [
            (1, "docs/a.md#top"),
            (1, "c.png"),
            (6, "../d.md"),
            (7, "e.rs"),
        ];
        assert_eq!(
            links(text),
            expected.map(|(line, target)| (line, target.to_owned()))
        );
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text = "# The bus\n## `PUT /x`: why?\n## The bus\n```\n# no\n```\n<a id=\"mine\"></a>";
        assert_eq!(anchors(text), ["the-bus", "put-x-why", "the-bus-1", "mine"]);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading_inside_the_repository() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join("README.md"), "# Start\n").unwrap();
        fs::write(root.path().join("docs/a.md"), "# A\n").unwrap();
        let follow = |target| follow(root.path(), "docs/a.md", target);
        assert_eq!(follow("../README.md#start"), Ok(()));
        assert_eq!(follow("/README.md"), Ok(()));
        assert_eq!(follow("#a"), Ok(()));
        assert_eq!(follow(".."), Ok(()));
        assert_eq!(follow("../README.md#end"), Err("no such heading"));
        assert_eq!(follow("b.md"), Err("no such file"));
        assert_eq!(follow("../../etc/passwd"), Err("leaves the repository"));
    }
}
