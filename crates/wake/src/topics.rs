//! The topics that somebody waits for, with their lanes. A topic exists while it has waiters.

use std::collections::HashMap;

use crate::{
    line::Line,
    seen::DoorCounters,
    timers::TimerId,
    topic::{Lane, Place, Topic},
    waiters::WaiterId,
};

/// A waiter's place, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    pub(crate) topic: u32,
    pub(crate) lane: u32,
}

#[derive(Debug)]
pub(crate) struct TopicEntry {
    pub(crate) name: Topic,
    pub(crate) door: u8,
    pub(crate) waiters: u32,
    lanes: Vec<Option<LaneEntry>>,
}

#[derive(Debug)]
pub(crate) struct LaneEntry {
    pub(crate) name: Lane,
    waiters: u32,
    /// Those without a pending wake: the ones that can be given one.
    pub(crate) line: Line,
    /// When these waiters should look again, if nothing wakes them before.
    pub(crate) alarm: Option<TimerId>,
}

#[derive(Debug, Default)]
pub(crate) struct Topics {
    entries: Vec<Option<TopicEntry>>,
    free: Vec<u32>,
    by_name: HashMap<Topic, u32>,
    doors: Vec<(String, DoorCounters)>,
    /// The lane that was made last. Waiters of one group at many topics share its name instead of
    /// keeping a copy each.
    recent_lane: Lane,
}

fn index(position: usize) -> u32 {
    u32::try_from(position).expect("topics and lanes fit in 32 bits")
}

impl Topics {
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn find(&self, name: &Topic) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn find_place(&self, place: &Place) -> Option<Stand> {
        let topic = self.find(&place.topic)?;
        let lane = self.get(topic).position(&place.lane)?;
        Some(Stand { topic, lane })
    }

    pub(crate) fn get(&self, topic: u32) -> &TopicEntry {
        self.entries[topic as usize]
            .as_ref()
            .expect("the topic has waiters")
    }

    fn get_mut(&mut self, topic: u32) -> &mut TopicEntry {
        self.entries[topic as usize]
            .as_mut()
            .expect("the topic has waiters")
    }

    pub(crate) fn lane(&self, stand: Stand) -> &LaneEntry {
        self.get(stand.topic).lanes[stand.lane as usize]
            .as_ref()
            .expect("the lane has waiters")
    }

    pub(crate) fn lane_mut(&mut self, stand: Stand) -> &mut LaneEntry {
        self.get_mut(stand.topic).lanes[stand.lane as usize]
            .as_mut()
            .expect("the lane has waiters")
    }

    /// A new waiter stands at `place`, at the end of its line.
    pub(crate) fn stand(&mut self, place: &Place, seq: u64, id: WaiterId) -> Stand {
        let topic = self
            .find(&place.topic)
            .unwrap_or_else(|| self.make(place.topic.clone()));
        let lane = self.get(topic).position(&place.lane).unwrap_or_else(|| {
            if self.recent_lane != place.lane {
                self.recent_lane = place.lane.clone();
            }
            let name = self.recent_lane.clone();
            self.get_mut(topic).make(name)
        });
        self.get_mut(topic).waiters += 1;
        let stand = Stand { topic, lane };
        let lane = self.lane_mut(stand);
        lane.waiters += 1;
        lane.line.insert(seq, id);
        stand
    }

    fn make(&mut self, name: Topic) -> u32 {
        let door = self.door(name.door());
        let entry = Some(TopicEntry {
            name: name.clone(),
            door,
            waiters: 0,
            lanes: Vec::new(),
        });
        let topic = match self.free.pop() {
            Some(topic) => {
                self.entries[topic as usize] = entry;
                topic
            }
            None => {
                self.entries.push(entry);
                index(self.entries.len() - 1)
            }
        };
        self.by_name.insert(name, topic);
        topic
    }

    /// A waiter is gone from `stand`. When it was the last of its lane there, the lane's alarm is
    /// given back to be cancelled.
    pub(crate) fn vacate(&mut self, stand: Stand) -> Option<TimerId> {
        let lane = self.lane_mut(stand);
        lane.waiters -= 1;
        let is_empty = lane.waiters == 0;
        let alarm = lane.alarm.take_if(|_| is_empty);
        let entry = self.get_mut(stand.topic);
        if is_empty {
            entry.lanes[stand.lane as usize] = None;
        }
        entry.waiters -= 1;
        if entry.waiters == 0 {
            let entry = self.entries[stand.topic as usize]
                .take()
                .expect("the topic is there");
            self.by_name.remove(&entry.name);
            self.free.push(stand.topic);
        }
        alarm
    }

    /// The lanes at `topics`, each with its stands at all of them.
    pub(crate) fn lanes_of(&self, topics: &[u32], only: Option<&Lane>) -> Vec<Vec<Stand>> {
        let mut found: Vec<(&Lane, Vec<Stand>)> = Vec::new();
        for &topic in topics {
            for (position, entry) in self.get(topic).lanes.iter().enumerate() {
                let Some(entry) = entry else { continue };
                if only.is_some_and(|only| *only != entry.name) {
                    continue;
                }
                let stand = Stand {
                    topic,
                    lane: index(position),
                };
                // A single topic, the usual case, names each lane once: no search.
                let known = if topics.len() == 1 {
                    None
                } else {
                    found.iter_mut().find(|(name, _)| **name == entry.name)
                };
                match known {
                    Some((_, stands)) => stands.push(stand),
                    None => found.push((&entry.name, vec![stand])),
                }
            }
        }
        found.into_iter().map(|(_, stands)| stands).collect()
    }

    /// Every place of `door` where someone waits, with how many.
    pub(crate) fn places_of<'a>(
        &'a self,
        door: &'a str,
    ) -> impl Iterator<Item = (&'a Topic, &'a Lane, usize)> {
        let door = self.doors.iter().position(|(name, _)| name == door);
        let of_door = self
            .entries
            .iter()
            .flatten()
            .filter(move |topic| Some(usize::from(topic.door)) == door);
        of_door.flat_map(|topic| {
            let lanes = topic.lanes.iter().flatten();
            lanes.map(|lane| (&topic.name, &lane.name, lane.waiters as usize))
        })
    }

    pub(crate) fn doors(&self) -> &[(String, DoorCounters)] {
        &self.doors
    }

    fn door(&mut self, name: &str) -> u8 {
        let known = self.doors.iter().position(|(door, _)| door == name);
        let door = known.unwrap_or_else(|| {
            self.doors.push((name.to_owned(), DoorCounters::default()));
            self.doors.len() - 1
        });
        u8::try_from(door).expect("there are a handful of doors")
    }

    /// Of a door where somebody has waited before; others' wakes are not worth counting.
    pub(crate) fn known_counters(&mut self, door: &str) -> Option<&mut DoorCounters> {
        let mut doors = self.doors.iter_mut();
        doors
            .find(|(name, _)| name == door)
            .map(|(_, counters)| counters)
    }

    pub(crate) fn counters(&mut self, topic: &Topic) -> &mut DoorCounters {
        let door = self.door(topic.door());
        &mut self.doors[usize::from(door)].1
    }

    pub(crate) fn counters_at(&mut self, topic: u32) -> &mut DoorCounters {
        let door = self.get(topic).door;
        &mut self.doors[usize::from(door)].1
    }
}

impl TopicEntry {
    fn position(&self, lane: &Lane) -> Option<u32> {
        let mut lanes = self.lanes.iter();
        lanes
            .position(|entry| entry.as_ref().is_some_and(|e| e.name == *lane))
            .map(index)
    }

    fn make(&mut self, name: Lane) -> u32 {
        let entry = Some(LaneEntry {
            name,
            waiters: 0,
            line: Line::Empty,
            alarm: None,
        });
        if let Some(gap) = self.lanes.iter().position(Option::is_none) {
            self.lanes[gap] = entry;
            return index(gap);
        }
        // Most topics have one lane: the usual growth to four would be most of what they cost.
        self.lanes.reserve_exact(1);
        self.lanes.push(entry);
        index(self.lanes.len() - 1)
    }
}
