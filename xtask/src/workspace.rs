//! The workspace as `cargo metadata` tells it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// One package of the dependency graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// SPDX expression; empty when the package names none.
    pub license: String,
}

/// One crate of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub folder: PathBuf,
    /// What it is built with; what only its tests use is not here.
    pub dependencies: Vec<String>,
    pub benches: Vec<String>,
}

#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    pub target: PathBuf,
    pub members: Vec<Member>,
    /// Ours and others', for every platform.
    pub packages: Vec<Package>,
}

impl Workspace {
    pub fn read() -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo).args(["metadata", "--format-version", "1"]).output()?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let json: Value = serde_json::from_slice(&output.stdout)?;
        Self::from_json(&json).context("cargo metadata has another shape than expected")
    }

    fn from_json(json: &Value) -> Option<Self> {
        let ours: Vec<&str> =
            json.get("workspace_members")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let all = json.get("packages")?.as_array()?;
        let is_ours = |package: &&Value| text(package, "id").is_some_and(|id| ours.contains(&id.as_str()));
        Some(Self {
            root: text(json, "workspace_root")?.into(),
            target: text(json, "target_directory")?.into(),
            members: all.iter().filter(is_ours).map(member).collect::<Option<_>>()?,
            packages: all.iter().map(package).collect::<Option<_>>()?,
        })
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn package(value: &Value) -> Option<Package> {
    Some(Package {
        name: text(value, "name")?,
        version: text(value, "version")?,
        license: text(value, "license").unwrap_or_default(),
    })
}

fn member(value: &Value) -> Option<Member> {
    let manifest = PathBuf::from(text(value, "manifest_path")?);
    let list = |key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let built_with = |dependency: &&Value| dependency.get("kind").is_none_or(Value::is_null);
    let is_bench = |target: &&Value| {
        let kinds = target.get("kind").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "bench"))
    };
    Some(Member {
        name: text(value, "name")?,
        folder: manifest.parent()?.to_owned(),
        dependencies: list("dependencies")
            .iter()
            .filter(built_with)
            .filter_map(|d| text(d, "name"))
            .collect(),
        benches: list("targets").iter().filter(is_bench).filter_map(|target| text(target, "name")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_dependencies_and_benches_are_found() {
        let json: Value = serde_json::from_str(
            r#"{"workspace_root":"/w","target_directory":"/w/target","workspace_members":["a 1"],"packages":[
                {"id":"a 1","name":"a","version":"1","license":"MIT","manifest_path":"/w/a/Cargo.toml",
                 "dependencies":[{"name":"b","kind":null},{"name":"t","kind":"dev"}],
                 "targets":[{"name":"a","kind":["lib"]},{"name":"speed","kind":["bench"]}]},
                {"id":"b 2","name":"b","version":"2","license":null,"manifest_path":"/r/b/Cargo.toml"}]}"#,
        )
        .unwrap();
        let workspace = Workspace::from_json(&json).unwrap();
        let member = Member {
            name: "a".into(),
            folder: "/w/a".into(),
            dependencies: vec!["b".into()],
            benches: vec!["speed".into()],
        };
        assert_eq!(workspace.members, [member]);
        assert_eq!(
            workspace.packages[1],
            Package { name: "b".into(), version: "2".into(), license: String::new() }
        );
    }
}
