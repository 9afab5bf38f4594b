//! What is in the binary, for programs: a bill of materials in CycloneDX.

use serde_json::{Value, json};

use super::hex;
use super::parts::Part;
use super::release::Release;

/// The bill, as JSON.
pub(crate) fn json(release: &Release, parts: &[Part], binary: &[u8]) -> String {
    let own = format!("pkg:generic/hob@{}", release.version);
    let components: Vec<Value> = parts.iter().map(component).collect();
    let names: Vec<&Value> = components.iter().map(|part| &part["bom-ref"]).collect();
    let time =
        i64::try_from(release.epoch).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.map(|time| time.to_string()),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "hob",
                "version": release.version,
                "purl": own,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": hex(binary) }],
                "externalReferences": [{ "type": "vcs", "url": release.repository }],
            },
        },
        "components": components,
        "dependencies": [{ "ref": own, "dependsOn": names }],
    });
    format!("{bill:#}\n")
}

fn component(part: &Part) -> Value {
    let name = format!("pkg:cargo/{}@{}", part.name, part.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": name,
        "name": part.name,
        "version": part.version,
        "purl": name,
        "scope": "required",
        "licenses": [{ "expression": part.licence }],
    });
    if let Some(sum) = &part.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    if let Some(url) = &part.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": url }]);
    }
    component
}
