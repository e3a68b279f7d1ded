//! Every relative link in the documents leads to a file, and to a heading
//! where it names one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::sources;

pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for document in sources::markdown(root)? {
        for (line, target) in outline(&document.text).links {
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
    if outline(&text).anchors.iter().any(|found| found == anchor) {
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

/// The relative links of a document with their lines, and the anchors that other links may name.
#[derive(Default)]
struct Outline {
    links: Vec<(usize, String)>,
    /// The names GitHub gives to headings, and explicit `<a id="…">`.
    anchors: Vec<String>,
}

fn outline(markdown: &str) -> Outline {
    let mut outline = Outline::default();
    let mut heading: Option<String> = None;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !is_external(&dest_url) =>
            {
                let line = markdown[..range.start].matches('\n').count() + 1;
                outline.links.push((line, dest_url.into_string()));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let earlier = counts.entry(slug.clone()).or_default();
                outline.anchors.push(match *earlier {
                    0 => slug,
                    again => format!("{slug}-{again}"),
                });
                *earlier += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let id = html
                    .split_once("<a id=\"")
                    .and_then(|(_, rest)| rest.split_once('"'));
                outline.anchors.extend(id.map(|(id, _)| id.to_owned()));
            }
            _ => {}
        }
    }
    outline
}

fn is_external(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or_default();
    scheme.contains([':', '@'])
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
                    [d], [`e`](e.rs)\n\n\
                    [d]: ../d.md\n";
        let expected = [
            (1, "docs/a.md#top"),
            (1, "c.png"),
            (6, "../d.md"),
            (6, "e.rs"),
        ];
        assert_eq!(
            outline(text).links,
            expected.map(|(line, target)| (line, target.to_owned()))
        );
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text = "# The bus\n## `PUT /x`: why?\n## The bus\n```\n# no\n```\n<a id=\"mine\"></a>";
        assert_eq!(
            outline(text).anchors,
            ["the-bus", "put-x-why", "the-bus-1", "mine"]
        );
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
