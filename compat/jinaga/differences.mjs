// Where Wakeline answers otherwise than the record, on purpose, and why.
//
// `status`, `headers` (null: anything) and `body` (a pattern) stand in for what was recorded.

const MALFORMED = "the caller's mistake: 400 with what is wrong, where upstream says 500";
const LENIENT = "accepted: upstream's own sample is written like this";
const OWN_PAGE = "not found and not allowed are told as elsewhere in this server, not as express does in HTML";
const LARGER = "bodies may be far larger than 100 kB";

const POSITION = "the text is the same, and says where in the request it is";
const DETAIL = "the text says more: which fact, or what is expected instead";
const FOREIGN = "numbers of upstream's say nothing about this store: a feed begins anew, and clients skip what they have";

/** Headers of the record that an answer need not have, and why. */
export const OMITTED_HEADERS = {
  "access-control-allow-origin": "only a request of a page, which has an Origin, is answered with it",
};

/** The recorded status and a text that begins as recorded. */
const more = (status, begins, why) => ({ status, why, body: new RegExp(`^${begins.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`) });
const refused = (status, why, body = /\S/) => ({ status, body, why, headers: { "content-type": null, "x-content-type-options": null } });
const created = (why) => ({ status: 201, body: /^Created$/, why, headers: { "x-content-type-options": null, "content-type": null } });
const page = (status) => ({ status, why: OWN_PAGE, body: /[^]*/, headers: { "content-type": null, "x-content-type-options": null, "access-control-allow-origin": null, allow: null } });

const DIFFERENCES = {
  "00-http-probe": {
    "save graph no trailing newline": created(LENIENT),
    "save graph CRLF": created(LENIENT),
    "save graph bad json": refused(400, MALFORMED),
    "save graph truncated": refused(400, MALFORMED),
    "save graph pred out of range": refused(400, MALFORMED),
    "save graph PK out of order": refused(400, MALFORMED),
    "save graph bad PEM": refused(400, MALFORMED),
    "save json missing predecessor (not stored)": refused(400, "upstream stores the fact and loses its edge for ever", /Bench\.Root/),
    "save json facts not array": refused(400, MALFORMED),
    "save json no hash": refused(400, MALFORMED),
    "save json malformed": refused(400, MALFORMED),
    "save json >100kb": created(LARGER),
    "save graph type >200 chars": refused(400, MALFORMED),
    "save graph NUL in field": created("a NUL in a string is a character as any other"),
    "save json wrong hash": more(403, "The signatures on the facts are invalid.", DETAIL),
    "load no body": refused(400, DETAIL, /body/),
    "feeds json content type": more(400, "Expected a string. Check the content type of the request", DETAIL),
    "feeds empty": more(400, "The request body is empty", DETAIL),
    "feeds malformed": more(400, "Expected '(' but found 'this is not a specification'", POSITION),
    "feeds undeclared given": more(400, "No fact named r was declared", POSITION),
    "feeds type mismatch": more(400, "The type of start fact 0 (Bench.Item) does not match the type of input 0 (Bench.Root)", POSITION),
    "feeds me without user": more(400, "The fact 'me' has not been defined", POSITION),
    "feed bookmark huge": { status: 200, body: /Bench\.Item/, why: FOREIGN, headers: { "content-type": "application/json", "x-content-type-options": null } },
    "feed bookmark past end": { status: 200, body: /Bench\.Item/, why: FOREIGN },
    "read missing content type": refused(400, DETAIL, /text\/plain/),
    "read malformed": more(400, "Expected '(' but found 'x'", POSITION),
    "read with <b>": more(400, "Expected identifier but found '&lt;b&gt;'", POSITION),
    "save text/plain": refused(400, MALFORMED),
    "save no body": refused(400, MALFORMED),
    "load 800 refs json (>100kb)": {
      status: 200,
      body: /"facts":\[.*Bench\.Item/,
      why: LARGER,
      headers: { "content-type": "application/json", "x-content-type-options": null },
    },
    "feeds path type mismatch": refused(400, MALFORMED),
    "feed bad bookmark": refused(400, MALFORMED),
    "GET /feeds": page(405),
    "GET /nothing": page(404),
    "POST /query": page(404),
    "PUT /save": page(405),
    "save gzip content-encoding": refused(400, MALFORMED),
  },
  "12-distribution-reactive": {
    "6 GET /feeds/Vncza": {
      withoutTypes: ["T.Administrator", "Jinaga.User"],
      why: "the facts that admit the user are asked about, not delivered: the feed has what was asked for",
    },
    "8 POST /load": {
      status: 200,
      body: /^(?![^]*T\.Administrator)[^]*T\.Office/,
      why: "what no rule shares with the user is left out: here the fact that admits him",
    },
  },
  "08-login-signatures": {
    "18 POST /feeds": {
      status: 200,
      body: /"decision":"denied","code":"principal-excluded"/,
      why: "upstream fails because the rule's given has another name than the client's; nothing can come that makes the one user another, so it is denied, not reactive",
      headers: { "x-content-type-options": null, "content-type": "application/json" },
    },
  },
};

export function difference(transcript, exchange) {
  return DIFFERENCES[transcript]?.[exchange];
}

/** Those that no exchange has: a list that has gone stale. */
export function unknown(transcript, names) {
  return Object.keys(DIFFERENCES[transcript] ?? {}).filter((name) => !names.includes(name));
}
