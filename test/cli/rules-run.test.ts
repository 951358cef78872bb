import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sqliteStore } from 'rivulet/log/sqlite'
import type { ResearchEvent } from 'rivulet'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { serve } from '../support/serve.ts'
import { tickAt } from '../support/ticks.ts'
import { rivulet } from './command.ts'

const BURST = `
version: 1
rules:
  - alert: Burst
    on: [monitor.event_stream]
    count: { over: 10m, gte: 2 }
    key: { monitor: source }
    lateness: 0
    annotations: { summary: '\${value} changes' }
`

/** A folder with an empty log and a rule file. */
async function folder(rules = BURST) {
  const path = await mkdtemp(join(tmpdir(), 'rivulet-rules-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  const [log, file] = [join(path, 'log.db'), join(path, 'rules.yaml')]
  const store = sqliteStore(log)
  onTestFinished(() => store.close())
  await store.positionAt('start')
  await writeFile(file, rules)
  /** Appends changes of a second ago, and a tick: all events up to now have come. */
  const detect = (...ids: readonly string[]) => {
    const now = Date.now()
    const received = new Date(now - 1_000).toISOString()
    return append(store, [...ids.map((id) => Object.assign(change(id), { received })), tickAt(now)])
  }
  /** As editors do: a new file in the place of the old one. */
  const edit = async (text: string) => {
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  return { log, file, detect, edit, append: (...events: readonly ResearchEvent[]) => append(store, events) }
}

const has = (text: string) => (line: string) => line.includes(text)

describe('rivulet rules run', () => {
  it('prints alerts as they fire, uses changed rules, and goes on with the old ones where these are wrong', async () => {
    const { log, file, detect, edit } = await folder()
    const run = rivulet(['rules', 'run', '--log', log, '--rules', file, '--from', 'start'])
    await run.stderrLine(has('running'))
    const fired = run.stdoutLine(has('firing'))
    await detect('a', 'b')
    expect(await fired).toMatch(/▲ firing\s+Burst: monitor=\/v1\/monitors\/m, 2: 2 changes/)

    const refused = run.stderrLine(has('the earlier ones go on'))
    await edit('version: 1\nrules: [{ alert: Burst, when: nothing }]\n')
    expect(await refused).toContain('rules.yaml')

    const reloaded = run.stderrLine(has('rules reloaded'))
    await edit(BURST.replace('gte: 2', 'gte: 1'))
    await reloaded
    const resolved = run.stdoutLine(has('resolved'))
    const again = run.stdoutLine(has('1 changes'))
    await detect('c')
    expect(await resolved).toMatch(/▽ resolved\s+Burst/)
    await again

    run.child.kill('SIGINT')
    const { code, stdout } = await run.ended
    expect(code).toBe(130)
    expect(stdout.match(/▲ firing/g)).toHaveLength(2)

    const list = await rivulet(['rules', 'list', '--log', log]).ended
    expect(list.stdout).toMatch(/^firing {3}Burst {2}monitor=\/v1\/monitors\/m {2}1 {2}since 20/)
    const { stdout: json } = await rivulet(['rules', 'list', '--log', log, '--json']).ended
    expect(JSON.parse(json)).toMatchObject({ alerts: [{ alert: 'Burst', state: 'firing' }], failed: 0 })
  }, 60_000)

  it('refuses wrong rules, a missing log, and a second run of them', async () => {
    const { log, file, detect, edit } = await folder()
    const missing = await rivulet(['rules', 'run', '--log', `${log}.none`, '--rules', file]).ended
    expect(missing.code).toBe(7)
    const first = rivulet(['rules', 'run', '--log', log, '--rules', file, '--from', 'start'])
    const fired = first.stdoutLine(has('firing'))
    await detect('a', 'b')
    await fired
    const second = await rivulet(['rules', 'run', '--log', log, '--rules', file]).ended
    expect(second).toMatchObject({ code: 6, stderr: expect.stringContaining('--wait') })
    await edit('version: 1\nrules: [{ alert: Burst, when: nothing }]\n')
    const wrong = await rivulet(['rules', 'run', '--log', log, '--rules', file]).ended
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('rules.yaml:2') })
  }, 60_000)

  it('posts signed alerts to a webhook, and needs the secret that it is to sign with', async () => {
    const { log, file, detect } = await folder()
    const received = Promise.withResolvers<{ body: string; signature: unknown }>()
    const url = await serve((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        response.writeHead(204).end()
        received.resolve({ body, signature: request.headers['webhook-signature'] })
      })
    })
    const args = ['rules', 'run', '--log', log, '--rules', file, '--from', 'start', '--webhook-url', url]
    args.push('--webhook-secret-env', 'SECRET')
    const without = await rivulet(args).ended
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('SECRET is not set') })
    const run = rivulet(args, { SECRET: 'whsec_dGVzdC1zZWNyZXQtdGVzdC1zZWNyZXQtdGVzdA==' })
    await run.stderrLine(has('running'))
    await detect('a', 'b')
    const { body, signature } = await received.promise
    expect(JSON.parse(body)).toMatchObject({ type: 'alert.firing', data: { alert: 'Burst' } })
    expect(signature).toMatch(/^v1,/)
    run.child.kill('SIGTERM')
    expect((await run.ended).code).toBe(143)
  }, 60_000)
})

describe('rivulet rules explain', () => {
  const RULES = `
version: 1
rules:
  - alert: Acquired
    on: [monitor.event_stream]
    when: data.output.type == 'text' && data.output.content.contains('acquired')
    key: { monitor: source }
`

  it('prints each part of a condition with its value, and what came of the event', async () => {
    const { log, file, append: add } = await folder(RULES)
    await add(change('acquired'), change('other'))
    const explain = (...args: readonly string[]) =>
      rivulet(['rules', 'explain', 'Acquired', '--rules', file, ...args]).ended
    const yes = await explain('--event', 'acquired', '--log', log)
    expect(yes.code).toBe(0)
    expect(yes.stdout).toContain('data.output.content.contains("acquired") = true')
    expect(yes.stdout).toMatch(/^ {4}data\.output\.type == "text" = true$/m)
    expect(yes.stdout).toMatch(/^matches {3}yes$/m)
    expect(yes.stdout).toMatch(/^key {7}monitor=\/v1\/monitors\/m$/m)
    const no = await explain('--event', 'other', '--log', log, '--json')
    expect(JSON.parse(no.stdout)).toMatchObject({
      alert: 'Acquired',
      matches: 'no',
      ignored: null,
      alerts: [],
    })
    const unknown = await explain('--event', 'none', '--log', log)
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('"none"') })
  }, 60_000)

  it('reads the event from a file of them, and names a line that is none', async () => {
    const { file } = await folder(RULES)
    const input = `${file}.ndjson`
    const explain = () =>
      rivulet(['rules', 'explain', 'Acquired', '--rules', file, '--event', 'e', '--file', input, '--json'])
        .ended
    await writeFile(input, `${JSON.stringify({ ...change('e'), data: {} })}\n`)
    const { stdout } = await explain()
    expect(JSON.parse(stdout)).toMatchObject({
      matches: 'no',
      expressions: [{ name: 'when', part: { problem: { kind: 'missing' } } }, { name: 'key.monitor' }],
    })
    await writeFile(input, '\n{"id":"e"}\n')
    expect(await explain()).toMatchObject({ code: 2, stderr: expect.stringContaining('.ndjson:2') })
  }, 60_000)
})
