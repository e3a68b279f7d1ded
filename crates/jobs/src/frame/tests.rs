use super::{msgpack::put_array, *};

const LIMITS: FrameLimits = FrameLimits {
    bytes: 1_000,
    keys: 4,
    key: 20,
};

fn frame(pairs: &[(&str, &[u8])]) -> Frame {
    let mut draft = Draft::new(LIMITS);
    for (key, value) in pairs {
        draft.put(key.as_bytes(), value).unwrap();
    }
    draft.finish()
}

fn shown(frame: &Frame) -> Vec<(String, Vec<u8>)> {
    let pairs = frame.pairs();
    pairs
        .map(|(key, value)| (text(key), value.to_vec()))
        .collect()
}

#[test]
fn a_written_frame_is_read_back_unchanged() {
    let written = frame(&[("a", b"\x01"), ("b", b"")]);
    assert_eq!(
        written.bytes(),
        &b"\x82\xc4\x01a\xc4\x01\x01\xc4\x01b\xc4\x00"[..]
    );
    assert_eq!(Frame::read(written.bytes(), LIMITS), Ok(written.clone()));
    assert_eq!(written.keys(), ["a", "b"]);
}

#[test]
fn text_keys_and_unpacked_values_are_stored_as_binaries() {
    // {"a": [1, {"x": nil}], "b": bin"\x2a"}
    let sent = b"\x82\xa1a\x92\x01\x81\xa1x\xc0\xa1b\xc4\x01\x2a";
    let read = Frame::read(sent, LIMITS).unwrap();
    let expected = [
        ("a".to_owned(), b"\x92\x01\x81\xa1x\xc0".to_vec()),
        ("b".to_owned(), b"\x2a".to_vec()),
    ];
    assert_eq!(shown(&read), expected);
}

#[test]
fn bytes_that_are_no_frame_are_refused_with_the_reason() {
    let many: Vec<u8> = [vec![0x85], vec![0x00; 10]].concat();
    let keys = b"\x85\xa1a\x00\xa1b\x00\xa1c\x00\xa1d\x00\xa1e\x00";
    let long = [&b"\x81\xb5"[..], &[b'k'; 21], b"\x00"].concat();
    let large = [&b"\x81\xa1a\xc5\x04\x00"[..], &[0; 1_024]].concat();
    let refusals = [
        &b""[..],
        b"\x90",
        b"\x81\xa1a",
        &many,
        b"\x82\xa1a\x00\xa1a\x01",
        b"\x80\xc0",
        keys,
        &long,
        &large,
    ];
    let texts = refusals.map(|sent| Frame::read(sent, LIMITS).unwrap_err().to_string());
    insta::assert_snapshot!(texts.join("\n"), @"
    not a frame as MessagePack: it breaks off
    not a frame as MessagePack: a map is expected
    not a frame as MessagePack: it breaks off
    not a frame as MessagePack: a text or a binary is expected
    the key a is there twice
    not a frame as MessagePack: there is more after its end
    more than 4 keys, the limit of this server (jobs.frame_keys)
    a key of more than 20 bytes, the limit of this server
    longer than 1000 bytes, the limit of this server (jobs.frame_bytes)
    ");
}

#[test]
fn only_the_requested_keys_are_kept() {
    let whole = frame(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
    let keys = ["c", "a", "z"].map(|key| key.as_bytes().to_vec());
    let part = whole.only(&HashSet::from(keys));
    assert_eq!(part, frame(&[("a", b"1"), ("c", b"3")]));
    assert_eq!(whole.only(&HashSet::new()).bytes(), &b"\x80"[..]);
}

#[test]
fn a_merge_replaces_and_adds_keys() {
    let whole = frame(&[("a", b"1"), ("b", b"2")]);
    let merged = whole.merged(&frame(&[("b", b"9"), ("c", b"3")]), LIMITS);
    assert_eq!(merged, Ok(frame(&[("a", b"1"), ("b", b"9"), ("c", b"3")])));
    let more = frame(&[("c", b""), ("d", b""), ("e", b"")]);
    assert_eq!(whole.merged(&more, LIMITS), Err(Refusal::TooManyKeys(4)));
}

#[test]
fn missing_required_keys_are_named() {
    let colours = frame(&[("arrays.colors", b"")]);
    let refusal = colours.check_required().unwrap_err();
    assert_eq!(refusal.to_string(), "missing required keys: arrays.radii");
    let both = frame(&[("arrays.radii", b""), ("arrays.colors", b"")]);
    assert_eq!(both.check_required(), Ok(()));
}

/// As `msgpack_numpy.packb(numpy.zeros((2, 3), "<f8"))` begins, with its keys as binaries or texts.
fn array(key: impl Fn(&mut Vec<u8>, &[u8])) -> Vec<u8> {
    let mut out = Vec::new();
    put_map(&mut out, 5);
    key(&mut out, b"nd");
    out.push(0xc3);
    key(&mut out, b"type");
    key(&mut out, b"<f8");
    key(&mut out, b"kind");
    put_binary(&mut out, b"");
    key(&mut out, b"shape");
    put_array(&mut out, 2);
    out.extend([2, 0xcd, 1, 0]);
    key(&mut out, b"data");
    put_binary(&mut out, &[0; 48]);
    out
}

fn as_text(out: &mut Vec<u8>, key: &[u8]) {
    out.push(0xa0 | u8::try_from(key.len()).unwrap());
    out.extend(key);
}

#[test]
fn an_array_is_recognised_by_its_header() {
    let expected = Property::Array {
        dtype: "<f8".to_owned(),
        shape: vec![2, 256],
    };
    assert_eq!(Property::read(&array(put_binary)), expected);
    assert_eq!(Property::read(&array(as_text)), expected);
}

#[test]
fn scalars_and_unreadable_values_have_their_own_kinds() {
    let kinds = [
        (&b"\xc3"[..], "bool"),
        (b"\x05", "int64"),
        (b"\xcb\0\0\0\0\0\0\0\0", "float64"),
        (b"\xa1x", "str"),
        (b"\xc4\x01x", "str"),
        (b"\xc0", "unknown"),
        (b"\x81\xa1x\x01", "unknown"),
        (b"", "unknown"),
        (b"\x85\xa2nd\xc3", "unknown"),
    ];
    for (value, dtype) in kinds {
        assert_eq!(
            Property::read(value),
            Property::Scalar { dtype },
            "{value:x?}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        if let Ok(frame) = Frame::read(&bytes, LIMITS) {
            let recheck_after = Frame::read(frame.bytes(), LIMITS);
            proptest::prop_assert_eq!(recheck_after, Ok(frame.clone()));
            proptest::prop_assert_eq!(frame.properties().len(), frame.keys().len());
        }
    }
}
