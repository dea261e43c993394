//! `[routing]`.

use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

use watershed_fabric::routing::Algorithm;

/// How packets find their way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct RoutingFile {
    /// The algorithm. Default: "dimension-order" where there are dimensions, "minimal-random" elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
}
