//! Frames as they are uploaded: JSON with everything in base64, or MessagePack.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, header};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use wakeline_web::json_at;

use super::super::rooms::{in_body, json, unprocessable};
use crate::{
    error::Error,
    frame::{Draft, Frame, FrameLimits, msgpack::Walk},
    frames::{Limits, refused},
};

/// The prefix of a JSON key that is in base64.
const BASE64_KEY: &str = "b64:";
/// Characters of a key in a refusal.
const MAX_SHOWN: usize = 100;

#[derive(Deserialize)]
struct FramesBody {
    frames: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct FrameBody {
    data: Box<RawValue>,
}

/// The frames of an append.
pub(super) fn several(
    headers: &HeaderMap,
    body: &[u8],
    limits: &Limits,
) -> Result<Vec<Frame>, Error> {
    let frames = if is(headers, "msgpack") {
        let mut walk = Walk::new(body);
        let malformed = |malformed| refused("body", &crate::frame::Refusal::Malformed(malformed));
        let count = walk.array().map_err(malformed)? as usize;
        check_count(count, limits.request)?;
        let frames = (0..count).map(|index| {
            let frame = Frame::walk(&mut walk, limits.frame);
            frame.map_err(|refusal| refused(&format!("body.frames[{index}]"), &refusal))
        });
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        walk.end().map_err(malformed)?;
        frames
    } else {
        let body: FramesBody = json(body)?;
        check_count(body.frames.len(), limits.request)?;
        let frames = body
            .frames
            .iter()
            .enumerate()
            .map(|(index, frame)| from_json(&format!("frames[{index}]"), frame, limits.frame));
        frames.collect::<Result<_, _>>()?
    };
    for (index, frame) in frames.iter().enumerate() {
        frame
            .check_required()
            .map_err(|refusal| refused(&format!("body.frames[{index}]"), &refusal))?;
    }
    Ok(frames)
}

/// The frame of a replace.
pub(super) fn whole(headers: &HeaderMap, body: &[u8], limits: FrameLimits) -> Result<Frame, Error> {
    let (at, frame) = if is(headers, "msgpack") {
        ("body", from_msgpack(body, limits)?)
    } else {
        let FrameBody { data } = json(body)?;
        ("body.data", from_json("data", &data, limits)?)
    };
    let required = frame.check_required();
    required.map_err(|refusal| refused(at, &refusal))?;
    Ok(frame)
}

/// The keys of a merge. ZnDraw's page sends no content type.
pub(super) fn part(headers: &HeaderMap, body: &[u8], limits: FrameLimits) -> Result<Frame, Error> {
    if is(headers, "json") {
        let FrameBody { data } = json(body)?;
        return from_json("data", &data, limits);
    }
    from_msgpack(body, limits)
}

fn is(headers: &HeaderMap, word: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.contains(word))
}

fn check_count(count: usize, most: usize) -> Result<(), Error> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(unprocessable(format!(
        "body.frames: {count} frames; 1 to {most} are taken at once (jobs.request_frames)"
    )))
}

fn from_msgpack(body: &[u8], limits: FrameLimits) -> Result<Frame, Error> {
    Frame::read(body, limits).map_err(|refusal| refused("body", &refusal))
}

fn from_json(at: &str, text: &RawValue, limits: FrameLimits) -> Result<Frame, Error> {
    let Members(members) =
        json_at(at, text.get().as_bytes()).map_err(|problem| in_body(&problem))?;
    let mut draft = Draft::new(limits);
    for (key, value) in members {
        let bytes = |what: &str, text: &str| {
            BASE64_STANDARD.decode(text).map_err(|error| {
                // Longer keys are refused, but for that they have to be decoded.
                let shown: String = key.chars().take(MAX_SHOWN).collect();
                unprocessable(format!(
                    "body.{at}: the {what} {shown} is not base64 ({error})"
                ))
            })
        };
        let value = bytes("value of", &value)?;
        let put = match key.strip_prefix(BASE64_KEY) {
            Some(encoded) => draft.put(&bytes("key", encoded)?, &value),
            None => draft.put(key.as_bytes(), &value),
        };
        put.map_err(|refusal| refused(&format!("body.{at}"), &refusal))?;
    }
    Ok(draft.finish())
}

/// An object of texts, in its order.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of texts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Members, M::Error> {
                let mut read = Vec::new();
                while let Some(member) = members.next_entry()? {
                    read.push(member);
                }
                Ok(Members(read))
            }
        }

        deserializer.deserialize_map(Texts)
    }
}
