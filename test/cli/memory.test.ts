import { PassThrough } from 'node:stream'
import { Command } from 'commander'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { addMemory, isConfirmed } from '../../src/cli/memory.ts'
import { rivulet, serveDocuments } from './command.ts'

/** A service that remembers a run of the scope `blue`, and a function that runs `rivulet memory`. */
async function remembering() {
  const { env } = await serveDocuments()
  const headers = { 'x-api-key': env.RIVULET_API_KEY, 'content-type': 'application/json' }
  const body = JSON.stringify({ input: 'What is a rivulet?', processor: 'base', memory_scope_key: 'blue' })
  const created = await fetch(`${env.RIVULET_BASE_URL}/v1/tasks/runs`, { method: 'POST', headers, body })
  const { run_id } = (await created.json()) as { run_id: string }
  await fetch(`${env.RIVULET_BASE_URL}/v1/tasks/runs/${run_id}/result`, { headers })
  return { id: run_id, memory: (...args: string[]) => rivulet(['memory', ...args], env).ended }
}

describe('rivulet memory', () => {
  it('prints, evicts and clears the memories of a scope', async () => {
    const { id, memory } = await remembering()

    const found = await memory('search', 'rivulet', '--scope', 'blue')
    expect(found).toMatchObject({ code: 0, stderr: '' })
    expect(found.stdout).toMatch(
      new RegExp(`^task     ${id}  \\S+Z\nWhat is a rivulet\\?\n  .*a small stream of water`),
    )
    const json = await memory('search', '--kind', 'task', '--limit', '1', '--scope', 'blue', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({ results: [{ kind: 'task', id }] })
    await expect(memory('search')).resolves.toMatchObject({ stdout: 'No memories.\n' })

    await expect(memory('evict', 'task', id, '--scope', 'blue')).resolves.toMatchObject({
      code: 0,
      stdout: `The memory blue no longer has ${id}.\n`,
    })
    await expect(memory('search', '--scope', 'blue')).resolves.toMatchObject({ stdout: 'No memories.\n' })
    // Standard input is no terminal.
    await expect(memory('clear', '--scope', 'blue', '--json')).resolves.toMatchObject({
      code: 0,
      stdout: '{"cleared":"blue"}\n',
    })
  })

  it('refuses a time that is none, and a kind that there is not', async () => {
    const { memory } = await remembering()

    await expect(memory('search', '--since', 'yesterday')).resolves.toMatchObject({ code: 2 })
    await expect(memory('evict', 'search', 'x')).resolves.toMatchObject({ code: 2 })
  })
})

/** What stdout gets from `rivulet memory clear` on a terminal where nobody agrees. */
async function refused(...args: string[]): Promise<string> {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  input.end('no\n')
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((_text, ...rest) => {
    for (const each of rest) if (typeof each === 'function') each()
    return true
  })
  onTestFinished(() => stdout.mockRestore())
  const program = new Command()
  addMemory(program, new AbortController().signal, input)
  // Nothing listens there: a request would fail.
  const service = ['--base-url', 'http://127.0.0.1:9']
  vi.stubEnv('RIVULET_API_KEY', 'key')
  onTestFinished(() => void vi.unstubAllEnvs())
  await program.parseAsync(['memory', 'clear', ...service, ...args], { from: 'user' })
  return stdout.mock.calls.map(([text]) => String(text)).join('')
}

describe('the confirmation of rivulet memory clear', () => {
  it('says as JSON that nothing was cleared, if the answer was no', async () => {
    expect(await refused('--json')).toBe('{"cleared":false}\n')
  })

  it('leaves stdout empty without --json, if the answer was no', async () => {
    expect(await refused()).toBe('')
  })

  it.each([
    ['y\n', true],
    [' YES \n', true],
    ['\n', false],
    ['no\n', false],
    ['yesterday\n', false],
    ['', false],
  ])('takes %j as %s on a terminal', async (typed, isYes) => {
    const input = Object.assign(new PassThrough(), { isTTY: true })
    input.end(typed)

    expect(await isConfirmed('Go on?', new AbortController().signal, input)).toBe(isYes)
  })

  it('reads no further than the answer, so that the command can end', async () => {
    const input = Object.assign(new PassThrough(), { isTTY: true })
    input.write('no\n')

    expect(await isConfirmed('Go on?', new AbortController().signal, input)).toBe(false)
    expect(input.isPaused()).toBe(true)
  })

  it('ends with the reason of an interruption', async () => {
    const input = Object.assign(new PassThrough(), { isTTY: true })
    const controller = new AbortController()
    const confirmed = isConfirmed('Go on?', controller.signal, input)
    controller.abort(new Error('ended by SIGINT'))

    await expect(confirmed).rejects.toThrow('ended by SIGINT')
  })
})
