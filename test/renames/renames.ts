/**
 * The map between {@link COMMIT} and today: names that have changed, and behaviours that have changed on purpose. main.ts runs the
 * tests of that commit with it.
 */

/** The last commit before recordings, stores and names were changed. */
export const COMMIT = 'a9e15f630aca8072060f582a93eb633e4e4c11cd'

const STORES = 'test/{log,gateway}/**'
const LETTERS = 'test/log/{conformance,migration}/**'
/** Tests that append to a store themselves. */
const APPENDING =
  'test/{cli/event-log.test,gateway/{clients/crowd-gateway,soak/recorder-process},log/{append,memory-log.test,migrate.property.test,retention-model,sqlite/events},log/conformance/{appending,clock,duplicates,fixture,forgetting,model,processes},log/migration/history}.ts'

const PAGES = 'test/{live,react}/**'
const NOTIFIERS = 'test/rules/notify/**'
/** Texts of the tests and their replacements, with a pattern of the files if it is not all files. */
export const RENAMES: readonly (readonly [from: RegExp | string, to: string, files?: string])[] = [
  // Names of the public interface.
  [/\b(memory|sqlite|nats)Log\b/g, '$1Store'],
  // A log in memory is delayed and failed through a function of the tests' own.
  [/\bmemoryStore\b/g, 'simulatedStore'],
  [/\b(Memory|Sqlite|Nats)Log(?=Options|Connection|Write|Settings|\b)/g, '$1Store'],
  [/(?<=\b(?:log|other|read|first))\.consumer\(|^( *)\.consumer\(/gm, '$1.consume('],
  [/\bslack(?=\(|,? \})/g, 'notifySlack', NOTIFIERS],
  [/\balertmanager(?=\(|,? \})/g, 'notifyAlertmanager', NOTIFIERS],
  [/\balertWebhook(?=\(|,? \})/g, 'notifyWebhook', NOTIFIERS],
  [/\b(Deliver|Reconnect|Stream)Config\b/g, '$1Options'],
  [/\bRun(Task|Result|Progress)\b/g, 'Processor$1', 'test/service/**'],
  [/\bRivuletError\b/g, 'RequestError'],
  [/\bfailure: '(refused|broken|silence)'/g, "reason: '$1'"],
  [/'(connect|headers)-timeout'/g, "'$1_timeout'"],
  [/\bfailure: '(?=(?:connect|headers)_timeout')/g, "reason: '"],
  [/(?<=name: 'LiveError',\s+)code(?=:)/g, 'reason', PAGES],
  [/(?<=name: 'LiveError',\s+)code(?!:)/g, 'reason: code', PAGES],
  [/(?<=toMatchObject\(\{\s+|error: \{ )code(?=: '\w+',?\s+\})/g, 'reason', PAGES],
  [/(?<=error\)\.toMatchObject\(\{ )code(?=: ')/g, 'reason', PAGES],
  [/(?<=text: 'A small ',\s+)code(?=: ')/g, 'serviceCode', 'test/sources/{chat,responses}/**'],
  ["'rivulet/nats'", "'rivulet/log/nats'"],
  // No value any more; isObservable tells a source from others.
  [/, Source(?= \} from 'rivulet')/g, ''],
  [/^.*toBeInstanceOf\(Source\).*\n/gm, '', 'test/sources/shapes/awaitable.test.ts'],
  // Options and variables of the command.
  ["'--start'", "'--from'", 'test/cli/rules-run.test.ts'],
  ["'--webhook'", "'--webhook-url'", 'test/cli/rules-run.test.ts'],
  ["'--input'", "'--file'", 'test/cli/rules-run.test.ts'],
  [/'--format', '(json|github|junit)'/g, "'--$1'", 'test/cli/rules{,-test}.test.ts'],
  ["'--max-results'", "'--limit'", 'test/cli/**'],
  ["'log', 'migrate', '--from'", "'log', 'migrate', '--log'", 'test/cli/**'],
  [/\bRIVULET_LOG\b/g, 'RIVULET_LOG_LEVEL'],
  ['RIVULET_LOG_FILE', 'EVENT_LOG', 'test/recipes/**'],
  // The service has its key from the environment alone.
  [
    ", '--api-key', 'key_of_the_test'])",
    "], { RIVULET_API_KEY: 'key_of_the_test' })",
    'test/cli/serve.test.ts',
  ],
  // Pages of docs have folders.
  [/\bdocs\/(client|command|errors|faults|live|log|observability|rules|stores)\.md/g, 'docs/reference/$1.md'],
  [/\bdocs\/interface\.md/g, 'docs/reference/wire.md'],
  [/\bdocs\/scale\.md/g, 'docs/guides/many-machines.md'],
  ["'docs/*.md'", "'docs/**/*.md'"],
  // Recording belongs to the log. The calls `client.record({ …, log })` are rewritten by main.ts.
  [
    /(createClient\(\{[^}]*\}\))\.record\(\{ \.\.\.recorded, log \}\)/g,
    'log.record({ client: $1, ...recorded })',
  ],
  [
    /client\.record\(\{ (taskGroups: groups), log: (await openLog\(memoryLog\(\)\)) \}\)/g,
    '($2).record({ client, $1 })',
  ],
  [
    'client.record({ taskGroups: groups, log: await openLog(memoryStore()) })',
    '(await openLog(memoryStore())).record({ client, taskGroups: groups })',
  ],
  ['client.record(unknown)', 'log.record(unknown)'],
  ['const unknown = { log, ', 'const unknown = { client, '],
  ["named client.record'", "named log.record'"],
  ["toThrow('client.record')", "toThrow('log.record')"],
  ['options of client.record in docs', 'options of log.record in docs'],
  // The checkpoint of a process was called its memo.
  [/\bmemo\b/g, 'checkpoint', STORES],
  [/\bmemoOf\b/g, 'checkpointOf', STORES],
  // The redelivery number of a dead letter was called its mark.
  [/\{ letters:/g, '{ deadLetters:', LETTERS],
  [/\{ letters\b/g, '{ deadLetters: letters', LETTERS],
  [/\.letters\b/g, '.deadLetters', LETTERS],
  [/\bletters: \[\]/g, 'deadLetters: []', LETTERS],
  [/\(\{ mark \}\) => mark/g, '({ number }) => number', LETTERS],
  [/\]\?\.mark\b/g, ']?.number', LETTERS],
  [/\bmark: (?=next\.last|second)/g, 'number: ', LETTERS],
  // `openLog` makes such a text well-formed, in front of every store.
  [/^ *'\{"s":"\\uD800"\}',\n/gm, '', 'test/log/conformance/inbox.ts'],
  // A store gets entries that `newEntry` has prepared.
  [/^/g, "import { newEntry } from 'rivulet/log/store'\n", APPENDING],
  [
    /(?<=[[(,] ?|return |const entry = )\{ event: ((?:[^(){}]|\((?:[^()]|\([^()]*\))*\)|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})+?)(?:, backfill: (\w+))? \}/g,
    'newEntry($1, $2)',
    APPENDING,
  ],
  [/(?<=[[(,] ?)\{ event(?:, backfill: (\w+))? \}(?!\)? =|: )/g, 'newEntry(event, $1)', APPENDING],
  [/(?<==> \()\{\s+event: (detection\(.*\)),\s+\}/g, 'newEntry($1)', 'test/log/sqlite/events.ts'],
  [/^.*const hostile = \[newEntry.*\n.*entries: hostile.*\n/gm, '', 'test/log/conformance/processes.ts'],
  // What a process has committed is part of its reader, one method deletes all that nothing refers to, and `backup` is of a file.
  [
    /await ([\w.#]+)\.processes\.(checkpoint|holdsRetention)\(name\)/g,
    '(await $1.reader(name))?.process?.$2',
    STORES,
  ],
  [/await (\w+)\.processes\.checkpoint\((\w+)\)/g, '(await $1.reader($2))?.process?.checkpoint', STORES],
  [/^ *expect\(await log\.processes\.holdsRetention\('process:seen'\)\).*\n/gm, '', STORES],
  [/^ *(?:expect\(await \w+\.retention\.isTrimmed\(\)\).*|isTrimmed: await .*)\n/gm, '', STORES],
  ['retention.trimIdentities()).toBe(true)', 'retention.clean()).toBe(false)', STORES],
  ['.processes.clean()', '.retention.clean()', STORES],
  ['.retention.backup(', '.backup(', STORES],
  // Insides that helpers of tests call, and that are classes now.
  [/\bcreate(Monitors|LiveDocuments)(?=\()/g, 'new $1', 'test/service/**'],
  [/\bcreate(Monitors|LiveDocuments)\b/g, '$1', 'test/service/**'],
  // Files of the sources that helpers of tests import, and that have moved.
  [
    "import { MAX_PENDING_LENGTH } from '../../../src/log/store/inbox-store.ts'",
    "import { MAX_PAGE_LENGTH as MAX_PENDING_LENGTH } from '../../../src/log/store/contract.ts'",
  ],
  ['/src/http/event-batch.ts', '/src/http/server-sent-events.ts'],
  ['/src/log/memory-log.ts', '/src/log/memory/store.ts'],
  ['/src/log/nats-log.ts', '/src/log/nats/index.ts'],
  ['/src/log/sqlite-log.ts', '/src/log/sqlite/index.ts'],
  ['/src/log/dead-letters.ts', '/src/log/event-log/dead-letters.ts'],
  ['/src/log/event-log.ts', '/src/log/event-log/event-log.ts'],
  ['/src/log/export.ts', '/src/log/event-log/export.ts'],
  ['/src/log/job.ts', '/src/log/event-log/job.ts'],
  ['/src/log/log-reader.ts', '/src/log/event-log/log-reader.ts'],
  ['/src/log/log-stats.ts', '/src/log/event-log/log-stats.ts'],
  ['/src/log/observer.ts', '/src/log/event-log/observer.ts'],
  ['/src/log/open-event-log.ts', '/src/log/event-log/open-event-log.ts'],
  ['/src/log/open-log.ts', '/src/log/event-log/open-log.ts'],
  ['/src/log/request-context.ts', '/src/log/event-log/request-context.ts'],
  ['/src/log/retention.ts', '/src/log/event-log/retention.ts'],
  ['/src/log/part-name.ts', '/src/log/consume/part-name.ts'],
  ['/src/log/macrotask.ts', '/src/protocol/macrotask.ts'],
  [/(import \{ isObject \} from '.*)\/event\.ts'/g, "$1/json.ts'"],
]

const IN_FRONT = 'openLog checks it, in front of every store: test/log/store/checked-store.test.ts'
const PREPARED =
  'an entry that is not JSON is refused before it comes to a store: test/log/store/new-entry.test.ts'
const IN_THE_TABLE = 'the table of endpoints names watch.positioned, memories and entity search too'
const CODES = 'every error has a code, also in JSON and in the log: test/client/options.test.ts'

/** Tests that fail on purpose: by file, the beginnings of their full names with the reason. An empty beginning is the whole file. */
export const CHANGED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'test/architecture.test.ts': {
    '': 'docs/internals/architecture.md lists the modules in another form, which is read by the test beside it',
  },
  'test/cli/create.test.ts': {
    'rivulet group needs the headers for the tool servers':
      'the error names the option --mcp-headers, and is one of usage: code 2',
  },
  'test/client/options.test.ts': {
    'a logger logs a retry as a warning, without the key': CODES,
    'an error in JSON has its message and its request': CODES,
  },
  'test/dashboard/dashboard.test.ts': {
    'the page of a dashboard has no rows and no error':
      'the page has its alerts from their view, not from the status',
    'the status of a dashboard has pending alerts':
      'it reads a field of stored states by its former name of one letter; ruleStatus has it',
  },
  'test/examples.test.ts': {
    'the examples read a log twice': 'its first consumer prints entries, since a batch is of a later issue',
  },
  'test/interface/client-options.test.ts': {
    'the table of options in docs/reference/client.md has the types':
      'the type of quotas has no exported name, so that the table has its shape',
  },
  'test/interface/links.test.ts': {
    'a link within the repository': 'pages are in folders, and those for maintainers are not packed',
  },
  'test/interface/endpoints.test.ts': { 'the table of all endpoints has a call': IN_THE_TABLE },
  'test/log/sqlite-log.test.ts': {
    'a log in an SQLite file: hostile events writes nothing of an append': PREPARED,
    'a log in an SQLite file: appending refuses more than an append may have': IN_FRONT,
    'a log in an SQLite file: dead letters are not stored by a commit that is refused': IN_FRONT,
    'a log in an SQLite file: its inbox refuses more ids that are done': IN_FRONT,
    'a log in an SQLite file: processes changes nothing by a commit that it refuses': IN_FRONT,
    'a log in an SQLite file: readers takes a commit of up to 10,000 acknowledged positions': IN_FRONT,
    'a log in an SQLite file: reading refuses the position of another log': IN_FRONT,
    'a log in an SQLite file: claims refuses a name without text': IN_FRONT,
    'a log in an SQLite file: its inbox refuses the payload': IN_FRONT,
    'a log in an SQLite file: reading begins at a time': IN_FRONT,
    'a log in an SQLite file: reading refuses a limit': IN_FRONT,
    'a log in an SQLite file: retention refuses to delete': IN_FRONT,
    'a log in an SQLite file: sharing divides sources': IN_FRONT,
    'a log in an SQLite file: the wall clock of one machine is believed once it was ahead':
      'the jump makes nothing old that was recorded before it was believed',
  },
  'test/log/sqlite/file.test.ts': { 'the event loop goes on between many appends and pages': IN_FRONT },
  'test/react/bundle.test.ts': {
    'a bundle of rivulet/react has the inspector': 'the inspector is one file, with another name',
  },
  'test/recipes/recipes.test.ts': {
    'docs/recipes.md contains the programs': 'the programs are in the guides, by topic',
  },
  'test/rules/evaluate/mutants.test.ts': {
    'the comparison with the definitions': 'its mutants replace lines of the sources, which have other names',
  },
  'test/service/responses/responses.test.ts': {
    'a response is refused with an unknown response':
      'an unknown previous_response_id is a 404, since responses are kept',
  },
  'test/sources/hostile-responses.property.test.ts': {
    'for any response of a service every call': IN_THE_TABLE,
  },
  'test/sources/record/recording.test.ts': {
    'a recording is refused at the call for what is no open log': 'record is a method of an open log',
  },
}
