/** `application_id` of a file that has a log: "RVLT". */
const APPLICATION = 0x52564c54

/** `user_version` of a log: the layout of its tables. It grows with each change of the layout. A file with another one is refused. */
const LAYOUT = 5

/** Marks the header of a file as that of a log. Part of the transaction that creates the tables. */
export const IDENTIFY = `PRAGMA application_id = ${APPLICATION}; PRAGMA user_version = ${LAYOUT};`

/** The fields of a file's header that identify a log. */
export interface FileHeader {
  readonly application: number
  readonly layout: number
}

/** Why a file with this header is refused; undefined for a log of this layout, and for a file of no program that may get a log. */
export function problemOfHeader({ application, layout }: FileHeader, hasLog: boolean): string | undefined {
  const isOther = application !== APPLICATION && (application !== 0 || (!hasLog && layout !== 0))
  if (isOther) return 'is a file of another program, by its application_id or user_version: use another file'
  // The first layout had no header.
  const found = hasLog && application === 0 ? 1 : layout
  if (found === LAYOUT || (!hasLog && application === 0)) return undefined
  const [age, advice] =
    found > LAYOUT
      ? ['a newer', 'use that version of rivulet, or another file']
      : ['an earlier', 'use that version of rivulet to read it, and a new file with this one']
  return `has the layout of ${age} version (${found}, this one knows ${LAYOUT}): ${advice}`
}

/**
 * The tables of a log. Their names keep clear of the user's own tables, since an effect may be stored in the same file.
 *
 * `last_position` is counted here and not by AUTOINCREMENT or rowids: a rowid is given out again once the last entries are
 * deleted, and AUTOINCREMENT writes its counter for each statement instead of each transaction. Every transaction that moves
 * it is synced before it becomes visible (`synchronous=FULL` syncs the WAL before the new end is published), so a power
 * cut cannot undo a position that a reader has seen. Otherwise the next entry would have the same position, and a reader
 * whose cursor is there would miss it.
 */
export const SCHEMA = `
  CREATE TABLE rivulet_log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL, -- random, part of each position
    last_position INTEGER NOT NULL,
    last_recorded INTEGER NOT NULL, -- Unix ms
    entries INTEGER NOT NULL DEFAULT 0, -- counted here, since COUNT reads the whole table
    trimmed_position INTEGER NOT NULL DEFAULT 0, -- everything up to here was deleted by retention
    trimmed_recorded INTEGER NOT NULL DEFAULT 0, -- of the last deleted entry, Unix ms
    identities INTEGER NOT NULL DEFAULT 0, -- ever added
    deleted_identities INTEGER NOT NULL DEFAULT 0,
    swept_identities INTEGER NOT NULL DEFAULT 0, -- of the mark of the last sweep
    paused_by TEXT, -- the reader that keeps recorders from appending
    max_bytes INTEGER, -- of the last recorder
    uptime INTEGER NOT NULL DEFAULT 0, -- ms in which the log was appended to
    uptime_clock INTEGER NOT NULL DEFAULT 0, -- the machine's monotonic clock at the last append, ms
    jump_since INTEGER, -- the same clock when a jump of the wall clock was seen that is not believed
    jump_by INTEGER -- by how much it jumped, ms
  ) STRICT;

  -- Written over free space, so that nothing is left there of what was forgotten. Empty otherwise.
  CREATE TABLE rivulet_fill (zeros BLOB) STRICT;

  -- Where the log was at an uptime, about once in an hour of it, for the age of identities.
  CREATE TABLE rivulet_mark (
    uptime INTEGER PRIMARY KEY,
    identities INTEGER NOT NULL,
    position INTEGER NOT NULL
  ) STRICT;

  -- Without an index by type: a read that filters a million entries takes half a second without it, and only for readers that
  -- begin far behind; the index takes 6 % of the file and a part of each append. The small columns come first, so that such a
  -- read does not touch the pages of long events.
  CREATE TABLE rivulet_entry (
    position INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    recorded INTEGER NOT NULL, -- Unix ms
    revision INTEGER NOT NULL,
    backfill INTEGER NOT NULL,
    event TEXT NOT NULL -- JSON
  ) STRICT;

  -- The changes of the clock, for retention by age. No other entry is in it.
  CREATE INDEX rivulet_clock ON rivulet_entry (position) WHERE type = 'log.clock';

  -- Apart from the entries, which may be deleted earlier.
  CREATE TABLE rivulet_identity (
    hash BLOB PRIMARY KEY, -- of source and id, 16 bytes
    position INTEGER NOT NULL, -- of the latest revision
    revision INTEGER NOT NULL,
    completeness INTEGER NOT NULL
  ) WITHOUT ROWID, STRICT;

  -- Since which number an open log was the last one to begin to append, for the tokens of positions. Generation 0: entries.
  CREATE TABLE rivulet_run (
    generation INTEGER NOT NULL,
    first INTEGER NOT NULL,
    token TEXT NOT NULL, -- random
    PRIMARY KEY (generation, first)
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE rivulet_stream (
    name TEXT PRIMARY KEY,
    position TEXT NOT NULL -- the service's
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE rivulet_reader (
    name TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,
    acknowledged TEXT NOT NULL, -- positions after the cursor, as a JSON array
    is_copy INTEGER NOT NULL -- whether the state itself is beside the effects of the consumer
  ) WITHOUT ROWID, STRICT;

  -- Its entry is a copy, which stays when the log deletes it.
  CREATE TABLE rivulet_dead_letter (
    reader TEXT NOT NULL,
    position INTEGER NOT NULL,
    recorded INTEGER NOT NULL, -- Unix ms
    revision INTEGER NOT NULL,
    backfill INTEGER NOT NULL,
    error_name TEXT NOT NULL,
    error_message TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failed INTEGER NOT NULL, -- Unix ms
    event TEXT NOT NULL, -- JSON
    PRIMARY KEY (reader, position)
  ) STRICT;

  -- Dead letters to hand out again. AUTOINCREMENT: a running reader asks for what comes after the last number that it knows.
  CREATE TABLE rivulet_redelivery (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    reader TEXT NOT NULL,
    position INTEGER NOT NULL,
    UNIQUE (reader, position)
  ) STRICT;

  -- Webhooks that are stored and not recorded yet.
  CREATE TABLE rivulet_webhook (
    number INTEGER PRIMARY KEY, -- in the order of arrival
    timestamp INTEGER NOT NULL, -- the webhook-timestamp, Unix s
    payload TEXT NOT NULL -- JSON, as it was received
  ) STRICT;

  -- Apart from the webhooks: the id of a recorded one stays known while the service may repeat it.
  CREATE TABLE rivulet_webhook_id (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE, -- the webhook-id
    received INTEGER NOT NULL -- Unix ms
  ) STRICT;

  -- Counted here, so that a webhook is stored or refused without counting the others.
  CREATE TABLE rivulet_inbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last_number INTEGER NOT NULL,
    pending INTEGER NOT NULL, -- rows of rivulet_webhook
    bytes INTEGER NOT NULL -- of their payloads
  ) STRICT;
  INSERT INTO rivulet_inbox VALUES (1, 0, 0, 0);
  -- A generation of a process. One without a name was dropped, and its rows are removed in steps. AUTOINCREMENT, so that no
  -- generation is used twice: it is part of positions.
  CREATE TABLE rivulet_process (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE, -- of its reader
    last_change INTEGER NOT NULL,
    forgotten INTEGER NOT NULL, -- the last change of a removed key whose row was deleted
    checkpoint TEXT NOT NULL,
    paused_token INTEGER, -- of the claim that waits for room
    holds_retention INTEGER NOT NULL DEFAULT 1 -- whether entries after its cursor stay
  ) STRICT;

  CREATE TABLE rivulet_state (
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    change INTEGER NOT NULL, -- the number of the last one
    state TEXT, -- JSON; null for a removed key
    PRIMARY KEY (generation, key)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX rivulet_state_by_change ON rivulet_state (generation, change);
  CREATE INDEX rivulet_removed_state ON rivulet_state (generation, change) WHERE state IS NULL;

  CREATE TABLE rivulet_timer (
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    clock TEXT NOT NULL,
    due INTEGER NOT NULL, -- Unix ms
    cause TEXT NOT NULL,
    data TEXT, -- JSON
    PRIMARY KEY (generation, key, name)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX rivulet_timer_by_due ON rivulet_timer (generation, clock, due, key, name);

  -- A row stays when its name is given up, so that no token is used twice.
  CREATE TABLE rivulet_claim (
    name TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    owner TEXT NOT NULL,
    slot INTEGER, -- whose lock its owner holds; null once it was given up
    instance TEXT -- of the open log that holds the slot
  ) WITHOUT ROWID, STRICT;
`

/** Small tables that are checked for damage whenever the log is opened. A check of all entries would take seconds. */
export const CHECKED_TABLES = [
  'rivulet_log',
  'rivulet_run',
  'rivulet_stream',
  'rivulet_reader',
  'rivulet_claim',
  'rivulet_inbox',
  'rivulet_process',
]
