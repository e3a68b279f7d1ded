use super::*;

fn walked(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut walk = Walk::new(bytes);
    let value = walk.value()?;
    walk.end()?;
    Ok(value)
}

#[test]
fn every_kind_of_value_can_be_skipped() {
    let long = |head: &[u8], length: usize| [head, &vec![0; length]].concat();
    let values: Vec<(Vec<u8>, Head)> = vec![
        (vec![0x00], Head::Integer),
        (vec![0xe0], Head::Integer),
        (vec![0xc0], Head::Nil),
        (vec![0xc2], Head::Bool),
        (vec![0xc3], Head::Bool),
        (long(&[0xca], 4), Head::Float),
        (long(&[0xcb], 8), Head::Float),
        (long(&[0xcc], 1), Head::Integer),
        (long(&[0xcd], 2), Head::Integer),
        (long(&[0xce], 4), Head::Integer),
        (long(&[0xcf], 8), Head::Integer),
        (long(&[0xd0], 1), Head::Integer),
        (long(&[0xd1], 2), Head::Integer),
        (long(&[0xd2], 4), Head::Integer),
        (long(&[0xd3], 8), Head::Integer),
        (long(&[0xa3], 3), Head::Text(3)),
        (long(&[0xd9, 200], 200), Head::Text(200)),
        (long(&[0xda, 1, 0], 256), Head::Text(256)),
        (long(&[0xdb, 0, 1, 0, 0], 65_536), Head::Text(65_536)),
        (long(&[0xc4, 3], 3), Head::Binary(3)),
        (long(&[0xc5, 1, 0], 256), Head::Binary(256)),
        (long(&[0xc6, 0, 1, 0, 0], 65_536), Head::Binary(65_536)),
        (long(&[0xc7, 3, 9], 3), Head::Extension(3)),
        (long(&[0xc8, 1, 0, 9], 256), Head::Extension(256)),
        (
            long(&[0xc9, 0, 1, 0, 0, 9], 65_536),
            Head::Extension(65_536),
        ),
        (long(&[0xd4, 9], 1), Head::Extension(1)),
        (long(&[0xd5, 9], 2), Head::Extension(2)),
        (long(&[0xd6, 9], 4), Head::Extension(4)),
        (long(&[0xd7, 9], 8), Head::Extension(8)),
        (long(&[0xd8, 9], 16), Head::Extension(16)),
        (vec![0x92, 0x91, 0x01, 0xa1, b'x'], Head::Array(2)),
        (vec![0xdc, 0, 1, 0xc0], Head::Array(1)),
        (vec![0xdd, 0, 0, 0, 1, 0xc0], Head::Array(1)),
        (vec![0x81, 0xa1, b'x', 0x90], Head::Map(1)),
        (vec![0xde, 0, 1, 0x00, 0x00], Head::Map(1)),
        (vec![0xdf, 0, 0, 0, 1, 0x00, 0x00], Head::Map(1)),
    ];
    for (bytes, head) in values {
        let begins = &bytes[..bytes.len().min(6)];
        assert_eq!(Walk::new(&bytes).head(), Ok(head), "{begins:x?}");
        assert_eq!(walked(&bytes), Ok(&*bytes), "{begins:x?}");
        for cut in 0..bytes.len().min(6) {
            assert_eq!(
                walked(&bytes[..cut]),
                Err(Malformed::BreaksOff),
                "{begins:x?}"
            );
        }
        let more = [&*bytes, &[0xc0]].concat();
        assert_eq!(walked(&more), Err(Malformed::GoesOn), "{begins:x?}");
    }
    assert_eq!(walked(&[0xc1]), Err(Malformed::NoValue));
}

#[test]
fn a_count_without_its_items_is_an_error_at_once() {
    assert_eq!(
        walked(&[0xdf, 0xff, 0xff, 0xff, 0xff]),
        Err(Malformed::BreaksOff)
    );
    assert_eq!(
        walked(&[0xdd, 0xff, 0xff, 0xff, 0xff]),
        Err(Malformed::BreaksOff)
    );
    assert_eq!(
        walked(&[0xc6, 0xff, 0xff, 0xff, 0xff]),
        Err(Malformed::BreaksOff)
    );
}

#[test]
fn deeply_nested_values_can_be_skipped() {
    let mut deep = vec![0x91; 1_000_000];
    deep.push(0xc0);
    assert_eq!(walked(&deep).map(<[u8]>::len), Ok(1_000_001));
}

#[test]
fn written_values_are_read_back() {
    for count in [0, 15, 16, 65_535, 65_536, u32::MAX] {
        let (mut array, mut map) = (Vec::new(), Vec::new());
        put_array(&mut array, count);
        put_map(&mut map, count);
        assert_eq!(Walk::new(&array).array(), Ok(count));
        assert_eq!(Walk::new(&map).map(), Ok(count));
    }
    for length in [0, 255, 256, 65_535, 65_536] {
        let mut binary = Vec::new();
        put_binary(&mut binary, &vec![7; length]);
        assert_eq!(Walk::new(&binary).bytes(), Ok(&*vec![7; length]));
    }
}

#[test]
fn whole_numbers_of_every_width() {
    assert_eq!(whole(&[0x7f]), Some(127));
    assert_eq!(whole(&[0xcc, 200]), Some(200));
    assert_eq!(whole(&[0xcd, 1, 0]), Some(256));
    assert_eq!(whole(&[0xce, 0, 1, 0, 0]), Some(65_536));
    assert_eq!(whole(&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]), Some(1 << 32));
    assert_eq!(whole(&[0xd1, 1, 0]), Some(256));
    for not in [
        &[0xff][..],
        &[0xd0, 0xff],
        &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
        &[],
    ] {
        assert_eq!(whole(not), None, "{not:x?}");
    }
}
