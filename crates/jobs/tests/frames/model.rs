//! Random sequences of steps against a list in memory.

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use wakeline_jobs::{
    frame::Frame,
    room::{AppendOutcome, EditOutcome, FrameSource, NewRoom, RoomCreation},
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, ME, frame, mark};

const STEPS: usize = 300;

pub(crate) async fn random_sequences_follow_the_model(fixture: Fixture) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    fixture.make_room("room-0").await;
    let (mut rooms, mut next) = (vec![Vec::<String>::new()], 0);
    // A copy begins with changes of its own.
    let mut changes = vec![0];
    for _ in 0..STEPS {
        let at = random.random_range(0..rooms.len());
        let name = format!("room-{at}");
        let many = rooms[at].len();
        let number = random.random_range(0..=many);
        let inside = number < many;
        let as_number = i64::try_from(number).unwrap();
        match random.random_range(0..10) {
            0..3 => {
                let marks: Vec<_> = (next..next + random.random_range(1..6)).collect();
                next += marks.len();
                let marks: Vec<_> = marks.iter().map(ToString::to_string).collect();
                let frames: Vec<Frame> = marks.iter().map(|mark| frame(mark)).collect();
                let done = fixture
                    .store
                    .append(name, None, frames, i64::MAX)
                    .done()
                    .await;
                rooms[at].extend(marks);
                let total = i64::try_from(rooms[at].len()).unwrap();
                let start = i64::try_from(many).unwrap();
                changes[at] += 1;
                let change = changes[at];
                let expected = AppendOutcome::Done {
                    start,
                    total,
                    change,
                };
                assert_eq!(done, expected);
            }
            3..7 => {
                let done = fixture.store.delete(name, None, as_number).done().await;
                if inside {
                    rooms[at].remove(number);
                    changes[at] += 1;
                }
                let left = i64::try_from(rooms[at].len()).unwrap();
                let expected = if inside {
                    let change = changes[at];
                    EditOutcome::Done {
                        total: left,
                        change,
                    }
                } else {
                    EditOutcome::NoFrame(left)
                };
                assert_eq!(done, expected);
            }
            7..9 => {
                next += 1;
                let new = frame(&next.to_string());
                let done = fixture
                    .store
                    .replace(name, None, as_number, new, None)
                    .done()
                    .await;
                changes[at] += i64::from(inside);
                let expected = EditOutcome::Done {
                    total: i64::try_from(many).unwrap(),
                    change: changes[at],
                };
                assert_eq!(done == expected, inside);
                if inside {
                    rooms[at][number] = next.to_string();
                }
            }
            _ if rooms.len() < 4 => {
                let room = NewRoom {
                    name: format!("room-{}", rooms.len()),
                    user: ME.id,
                    frames: FrameSource::Room(name),
                    copy_limit: i64::MAX,
                };
                let made = fixture.store.create_room(room).done().await;
                assert!(matches!(made, RoomCreation::Done(_)), "{made:?}");
                let copy = rooms[at].clone();
                rooms.push(copy);
                changes.push(0);
            }
            _ => {}
        }
        let at = random.random_range(0..rooms.len());
        check(&fixture, &format!("room-{at}"), &rooms[at], &mut random).await;
    }
}

/// Reads a part of the room by range and by indices.
async fn check(fixture: &Fixture, name: &str, expected: &[String], random: &mut SmallRng) {
    let start = random.random_range(0..=expected.len());
    let stop = random.random_range(start..=expected.len());
    let path = format!("/v1/rooms/{name}/frames?start={start}&stop={stop}");
    assert_eq!(fixture.get(&path).await.marks(), &expected[start..stop]);
    let number = i64::try_from(start).unwrap();
    let found = fixture
        .store
        .frame(name.to_owned(), number)
        .await
        .unwrap()
        .unwrap();
    let stored = found.1.map(|stored| mark(&stored.frame));
    assert_eq!(stored.as_ref(), expected.get(start));
    assert_eq!(found.0.stored, i64::try_from(expected.len()).unwrap());
}
