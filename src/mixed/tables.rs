//! What switches look up: each packet in the tables of the family whose channel it is on.

use super::{Map, WORDS};
use watershed_armed::frame::FRAME_BYTES;
use watershed_armed::{self as armed};
use watershed_fabric::routing::Routes;
use watershed_fabric::{self as fabric, Flit, FlitSize, PortSet, Route, RouteView};
use watershed_pbv::routes::{Directory, FRAMES, MOST_ROUTE_FLITS, route_flits};
use watershed_piuma::Registers;
use watershed_state::{Loader, Mismatch, Saver, state};

/// The tables of all families of a system.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Which channels belong to whom.
    pub map: Map,
    /// PIUMA's registers; end points of hosts and ranks look at them, too.
    pub piuma: Option<Registers>,
    /// The armed family's multicast tables.
    pub armed: Option<armed::Tables>,
    /// The PBV family's route tables.
    pub pbv: Option<Directory>,
    /// How messages and traffic go.
    pub routes: Routes,
    /// Lanes of traffic.
    pub lanes: u8,
}

state!(Tables { each: piuma, armed, pbv; built: map, routes, lanes });

impl Tables {
    /// A flit as the armed family knows it.
    fn as_armed(&self, flit: &Flit) -> Flit {
        flit.on(flit.tag.vc() - self.map.armed.first)
    }
}

impl fabric::Tables<WORDS> for Tables {
    const ROUTE_FLITS: u16 = MOST_ROUTE_FLITS;
    const CLASSES: bool = true;

    fn route_flits(&self, channel: u8) -> u16 {
        if self.map.is_frame(self.map.vcs().set + channel) {
            route_flits(fabric::Tables::<WORDS>::cut(self))
        } else {
            1
        }
    }

    fn cut(&self) -> FlitSize {
        let pbv = self.pbv.as_ref().map(|directory| directory.cut);
        self.armed.as_ref().map(|tables| tables.cut).or(pbv).unwrap_or_default()
    }

    fn class(&self, channel: u8, head: &Flit) -> u8 {
        let frame = self.map.is_frame(self.map.vcs().set + channel);
        self.pbv.as_ref().filter(|_| frame).map_or(0, |pbv| fabric::Tables::<WORDS>::class(pbv, FRAMES, head))
    }

    fn outputs(&self, switch: u32, port: u16, flit: &Flit) -> PortSet<WORDS> {
        if flit.tag.vc() < self.map.of_piuma() {
            let ports = self.piuma.as_ref().map(|registers| registers.outputs(switch, port, flit));
            return ports.unwrap_or_default().iter().collect();
        }
        self.armed.as_ref().map(|tables| tables.outputs(switch, port, &self.as_armed(flit))).unwrap_or_default()
    }

    fn longest_multicast(&self, vc: u8) -> u32 {
        if self.map.armed.has(vc) && vc - self.map.armed.first == armed::DOWN {
            fabric::Tables::<WORDS>::cut(self).flits(FRAME_BYTES) as u32
        } else {
            1
        }
    }

    fn unicast(&self, at: &RouteView<'_>, flit: &Flit) -> Route {
        let set = self.map.vcs().set;
        let beside = self.map.untold();
        if at.channel >= beside {
            // The routing function sees one lane.
            let at = at.channel_range(beside, self.map.of_traffic()).lane(self.lanes);
            return self.routes.route(&at, flit).to_all_channels(&at);
        }
        let of = |channels: fabric::Channels| {
            let first = (channels.first + channels.vcs.set).max(set) - set;
            at.channel_range(first, channels.vcs.unicast)
        };
        let (at, route) = match &self.pbv {
            Some(directory) if self.map.is_frame(set + at.channel) => {
                let at = of(self.map.pbv);
                (at, fabric::Tables::<WORDS>::unicast(directory, &at, flit))
            }
            _ => {
                let own = if self.map.armed.has(set + at.channel) { self.map.armed } else { self.map.piuma };
                let at = of(own);
                (at, self.routes.route(&at, flit))
            }
        };
        route.to_all_channels(&at)
    }

    fn commit(&mut self) {
        if let Some(armed) = &mut self.armed {
            armed.commit();
        }
    }

    fn staged(&self, to: &mut Saver) {
        if let Some(armed) = &self.armed {
            armed.staged(to);
        }
    }

    fn stage(&mut self, from: &mut Loader<'_>) -> Result<(), Mismatch> {
        self.armed.as_mut().map_or(Ok(()), |armed| armed.stage(from))
    }

    fn no_route(&self, switch: u32, port: u16, flit: &Flit) -> String {
        match (&self.piuma, &self.armed) {
            (Some(registers), _) if flit.tag.vc() < self.map.of_piuma() => registers.no_route(switch, port, flit),
            (_, Some(tables)) => tables.no_route(switch, port, &self.as_armed(flit)),
            _ => format!("a set-routed flit came in by port {port} of switch {switch}, where no family has such flits"),
        }
    }
}
