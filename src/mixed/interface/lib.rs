//! What is known of networks of several families without their engines: which channels belong to whom.

use watershed_fabric::{Channels, Vcs};
use watershed_piuma_interface::channels::{CHANNELS, channel_names};

/// The channels that each family needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChannelDemand {
    /// Set-routed channels of PIUMA; 0 without its engines.
    pub piuma: u8,
    /// Set-routed channels of the armed family; 0 without it.
    pub armed: u8,
    /// Whether there are engines of the PBV family.
    pub pbv: bool,
    /// Point-to-point channels of messages of the armed family's software reductions.
    pub armed_messages: u8,
    /// Of messages of PIUMA's programs, of hosts and of ranks.
    pub messages: u8,
    /// Of background traffic, all lanes together.
    pub traffic: u8,
}

/// The channels of a system, by family.
///
/// ```
/// use watershed_mixed_interface::{ChannelDemand, Map};
///
/// let asked = ChannelDemand { piuma: 2, armed: 2, pbv: true, armed_messages: 1, messages: 2, traffic: 2 };
/// let map = Map::new(asked);
/// assert_eq!((map.vcs().set, map.vcs().unicast), (4, 6));
/// assert_eq!(map.armed.first, 2); // its channel 0, the climbing frames
/// assert_eq!(map.pbv.first, 5); // behind four set-routed ones and the armed family's messages
/// assert_eq!(map.piuma.vcs.set, 6); // where its messages begin
/// assert_eq!(map.names()[2..6], ["up", "down", "p2p0", "p2p1"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Map {
    asked: ChannelDemand,
    /// PIUMA's, whose messages are no neighbours of its set-routed channels: what is in between it does not look at.
    pub piuma: Channels,
    /// The armed family's.
    pub armed: Channels,
    /// The PBV family's.
    pub pbv: Channels,
}

impl Map {
    /// The channels of a system in which each has what it asked for.
    pub fn new(asked: ChannelDemand) -> Map {
        let set = asked.piuma + asked.armed;
        let (frames, messages) = (set + asked.armed_messages, set + asked.armed_messages + u8::from(asked.pbv));
        Map {
            asked,
            piuma: Channels { first: 0, vcs: Vcs { set: messages, unicast: asked.messages } },
            armed: Channels { first: asked.piuma, vcs: Vcs { set: asked.armed, unicast: asked.armed_messages } },
            pbv: Channels { first: frames, vcs: Vcs { set: 0, unicast: asked.pbv.into() } },
        }
    }

    /// All channels.
    pub fn vcs(&self) -> Vcs {
        Vcs { set: self.asked.piuma + self.asked.armed, unicast: self.untold() + self.asked.traffic }
    }

    /// Point-to-point channels in front of those of traffic.
    pub fn untold(&self) -> u8 {
        self.asked.armed_messages + u8::from(self.asked.pbv) + self.asked.messages
    }

    /// Set-routed channels of PIUMA.
    pub fn of_piuma(&self) -> u8 {
        self.asked.piuma
    }

    /// Channels of traffic.
    pub fn of_traffic(&self) -> u8 {
        self.asked.traffic
    }

    /// Whether a channel carries frames of the PBV family.
    pub fn is_frame(&self, vc: u8) -> bool {
        self.asked.pbv && vc == self.pbv.first
    }

    /// Names of the channels in waves and reports.
    pub fn names(&self) -> Vec<String> {
        let mut names = channel_names(self.asked.piuma / CHANNELS);
        names.extend(["up", "down", "agent"].into_iter().take(self.asked.armed.into()).map(str::to_owned));
        names.extend((0..self.vcs().unicast).map(|vc| format!("p2p{vc}")));
        names
    }
}
