//! Planes, each with a channel of requests and one of responses.

/// The request channel: inputs and partial results climb on it.
pub const REQUEST: u8 = 0;
/// The response channel: results descend on it. It has priority over requests.
pub const RESPONSE: u8 = 1;
/// Collective channels of a plane.
pub const CHANNELS: u8 = 2;

/// The most planes: pairs of a request and a response channel of their own, on every link. Segments of one collective
/// use a plane each; everything else uses plane 0.
pub const MAX_PLANES: u8 = 8;

/// The channel of a plane on which requests (or responses) travel.
#[inline]
pub const fn channel(plane: u8, kind: u8) -> u8 {
    plane * CHANNELS + kind
}

/// The plane of a channel.
#[inline]
pub const fn plane(vc: u8) -> u8 {
    vc / CHANNELS
}

/// What a channel carries: [`REQUEST`] or [`RESPONSE`].
#[inline]
pub const fn kind(vc: u8) -> u8 {
    vc % CHANNELS
}

/// `request` or `response`.
pub fn channel_name(channel: u8) -> &'static str {
    if channel == REQUEST { "request" } else { "response" }
}

/// Names of the collective channels of `planes` planes.
pub fn channel_names(planes: u8) -> Vec<String> {
    let plane =
        |plane: u8| ["request", "response"].map(|kind| if plane == 0 { kind.into() } else { format!("{kind}{plane}") });
    (0..planes).flat_map(plane).collect()
}
