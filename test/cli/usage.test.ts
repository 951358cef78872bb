import type { Command } from 'commander'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { errorMessageOf, exitCodeOf } from '../../src/cli/exit.ts'
import { createProgram } from '../../src/cli/program.ts'
import { rivulet } from './command.ts'

const COMMANDS = [
  'start',
  'serve',
  'search',
  'extract',
  'find-all',
  'memory',
  'run',
  'group',
  'monitor',
  'watch',
  'record',
  'log',
  'mcp',
]

beforeEach(() => {
  // Without the settings of this machine's user.
  for (const name of Object.keys(process.env)) if (name.startsWith('RIVULET_')) vi.stubEnv(name, undefined)
  return () => vi.unstubAllEnvs()
})

const commandsOf = (command: Command): Command[] => [command, ...command.commands.flatMap(commandsOf)]

/** What the command prints and how it ends, without a process of its own. */
async function run(args: readonly string[]) {
  const program = createProgram(new AbortController().signal)
  let stdout = ''
  let stderr = ''
  for (const command of commandsOf(program)) {
    command.configureOutput({
      writeOut: (text) => void (stdout += text),
      writeErr: (text) => void (stderr += text),
    })
  }
  const error: unknown = await program.parseAsync(args, { from: 'user' }).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  stderr += (error !== undefined && errorMessageOf(error)) || ''
  return { code: error === undefined ? 0 : exitCodeOf(error), stdout, stderr }
}

describe('rivulet --help', () => {
  it('lists the commands, the environment and the exit codes', async () => {
    const { code, stdout } = await rivulet(['--help']).ended

    expect(code).toBe(0)
    for (const word of [...COMMANDS, 'RIVULET_API_KEY', 'Exit codes:']) {
      expect(stdout).toContain(word)
    }
  })

  it.each(COMMANDS)('of %s has examples', async (command) => {
    const { code, stdout } = await run([command, '--help'])

    expect(code).toBe(0)
    expect(stdout).toContain(`$ rivulet ${command}`)
  })
})

describe('the environment of a log on a server', () => {
  const read = ['log', 'read', '--log', 'nats://127.0.0.1:1/watch']

  it.each([
    [{ RIVULET_NATS_USER: 'anna' }, /go together/],
    [{ RIVULET_NATS_PASSWORD: 'hunter2' }, /go together/],
    [{ RIVULET_NATS_TOKEN: 'hunter2', RIVULET_NATS_USER: 'anna' }, /use one of/],
    [{ RIVULET_NATS_CREDS_FILE: 'no-such.creds' }, /no-such\.creds cannot be read \(ENOENT\)/],
    [{ RIVULET_NATS_CREDS_FILE: 'package.json' }, /RIVULET_NATS_CREDS_FILE: .* text of a \.creds file/],
    [{ RIVULET_NATS_CA_FILE: 'no-such.pem' }, /RIVULET_NATS_CA_FILE: no-such\.pem cannot be read/],
  ])('%j ends with 2 and the reason, without a secret', async (env, message) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    const { code, stdout, stderr } = await run(read)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('hunter2')
  })

  it('ends with 2 and the line to install its packages with, where they are missing', async () => {
    // As where the package is installed without them: they are looked for in a folder that has none.
    const hook = `import { registerHooks } from 'node:module'
      registerHooks({ resolve: (name, context, next) =>
        next(name, name.startsWith('@nats-io/') ? { ...context, parentURL: 'file:///missing/a.js' } : context) })`
    const imported = `data:text/javascript,${encodeURIComponent(hook)}`
    const ended = await rivulet(read, { NODE_OPTIONS: `--import=${imported}` }).ended

    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toBe(
      'rivulet: a log on a NATS server needs three packages: ' +
        'npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv\n',
    )
  })

  it('ends with 5 where no server answers', async () => {
    vi.stubEnv('RIVULET_NATS_USER', 'anna')
    vi.stubEnv('RIVULET_NATS_PASSWORD', 'hunter2')
    const { code, stdout, stderr } = await run(read)

    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toMatch(/^the log "watch" cannot be reached: (?!.*hunter2)/)
  })
})

describe('an invalid command line', () => {
  it.each([
    [['serve', '--bogus'], "error: unknown option '--bogus'\n(use --help for details)\n"],
    [['watch'], 'rivulet: nothing to watch: use --monitor, --group, --run, --find-all or --webhook-port\n'],
    [
      ['serve', '--\u202E\u001B[2J'],
      "error: unknown option '--\\u202e\\u001b[2J'\n(use --help for details)\n",
    ],
    [
      ['log', 'rewind', '--log', 'x.db', '--consumer', 'c', '--effects', '\u202Egpj.db\u009B'],
      'rivulet: --effects: there is no file \\u202egpj.db\\u009b\n',
    ],
  ])('%j ends the process with 2, and its standard error has the reason', async (args, stderr) => {
    expect(await rivulet(args).ended).toEqual({ code: 2, stdout: '', stderr })
  })

  it.each([
    [['serve', '--bogus'], /unknown option '--bogus'/],
    [['serve', '--dosc', '.'], /Did you mean --docs\?/],
    [['watsh'], /Did you mean watch\?/],
    [['monitor', 'crate'], /Did you mean create\?/],
    [['monitor', 'create', '--query', 'rivers'], /--frequency <time>' not specified/],
    [['serve', '--site', './docs'], /Expected URL=FOLDER/],
    [['serve', '--source', './no-such-folder'], /There is no such folder/],
    [['serve', '--source', 'ftp://example.org/'], /--source must be a folder, or an http or https URL/],
    [['serve', '--source', 'https://anna:hunter2@example.org/'], /^(?!.*hunter2).*without credentials/],
    [['serve', '--source', 'https://example.org/', '--refresh', '5'], /Expected a number and s, m, h or d/],
    [['run', 'x', '--schema', 'no-such-file.json'], /no such file/],
    [['serve', '--fault', 'boom'], /no fault "boom"/],
    [['serve', '--docs', './no-such-folder'], /no such folder/],
    [['search', 'rivers'], /RIVULET_BASE_URL/],
    [['search', 'rivers', '--base-url', 'http://127.0.0.1:1'], /RIVULET_API_KEY is not set/],
    [['extract'], /missing required argument 'url'/],
    [['watch'], /--monitor, --group, --run, --find-all or --webhook-port/],
    [['record', '--group', 'g'], /--log <file\|url>' not specified/],
    [['record', '--log', 'x.db'], /--monitor, --group, --run, --find-all, --webhook-port/],
    [
      ['record', '--log', 'x.db', '--webhook-port', '0', '--base-url', 'http://127.0.0.1:1'],
      /RIVULET_API_KEY is not set|RIVULET_WEBHOOK_SECRET/,
    ],
    [['record', '--log', 'x.db', '--group', 'g', '--max-age', '30'], /such as 30d/],
    [['record', '--log', 'x.db', '--group', 'g', '--max-size', '2 TB'], /such as 2GB/],
    [['log', 'read'], /--log <file\|url>' not specified/],
    [['log', 'read', '--log', 'x.db', '--from', 'yesterday'], /Expected start, end, or a time/],
    [['log', 'read', '--log', 'x.db', '--from', 'start', '--after', 'p'], /cannot be used with/],
    [['log', 'remove-reader', '--log', 'x.db'], /remove-reader needs --consumer, --process or --recording/],
    [['log', 'remove-reader', '--log', 'x.db', '--consumer', 'c', '--process', 'p'], /cannot be used with/],
    [
      ['log', 'rewind', '--log', 'x.db', '--consumer', 'c', '--effects', 'no-such.db'],
      /--effects: there is no file no-such\.db/,
    ],
    [['log', 'dead-letters', '--log', 'x.db', '--redeliver', 'all'], /--redeliver needs --consumer/],
    [
      ['log', 'dead-letters', '--log', 'x.db', '--process', 'p', '--redeliver', 'all'],
      /--redeliver needs --consumer: a process is rebuilt instead/,
    ],
    [['log', 'dead-letters', '--log', 'x.db', '--remove', 'all'], /--remove needs --consumer or --process/],
    [['log', 'dead-letters', '--log', 'x.db', '--consumer', 'c', '--process', 'p'], /cannot be used with/],
    [['log', 'tial', '--log', 'x.db'], /Did you mean tail\?/],
    [['log', 'read', '--log', 'http://localhost/x'], /a file, nats:\/\/host:4222\/NAME or tls:/],
    [['log', 'read', '--log', 'nats://localhost:4222'], /is like nats:\/\/host:4222\/NAME/],
    [['log', 'migrate', '--log', 'nats://a/x', '--to', 'nats://a/x'], /are the same log: name a new one/],
    [['log', 'read', '--log', 'nats:anna:hunter2@a/x'], /^(?!.*hunter2).*nats:\/\/host:4222\/NAME/],
    [['log', 'read', '--log', 'nats://localhost:4222/a.b'], /letters, digits, "-" and "_"/],
    [['log', 'read', '--log', 'tls://localhost:4222/a?token=hunter2'], /^(?!.*hunter2).*is like tls:/],
    [['log', 'read', '--log', 'nats://anna:hunter2@a:1,b:2/x'], /^(?!.*hunter2).*RIVULET_NATS_CREDS_FILE/],
    [['log', 'read', '--log', 'http://anna:hunter2@localhost/x'], /^(?!.*hunter2).*a log is a file/],
  ])('%j ends with 2 and the reason', async (args, message) => {
    const { code, stdout, stderr } = await run(args)

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(message)
  })
})
