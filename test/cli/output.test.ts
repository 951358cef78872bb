import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { OutputClosed } from '../../src/cli/exit.ts'
import { createOutput } from '../../src/cli/output.ts'

const json = true

describe('the output', () => {
  it('waits for a slow reader', async () => {
    const stream = new PassThrough({ highWaterMark: 16 })
    const output = createOutput(stream, { json, signal: new AbortController().signal })
    let written = false

    const writing = output.value({ text: 'more than the buffer holds' }).then(() => (written = true))
    await new Promise(setImmediate)
    expect(written).toBe(false)
    stream.resume()
    await writing
    expect(written).toBe(true)
  })

  it('stops waiting when the command is aborted', async () => {
    const controller = new AbortController()
    const output = createOutput(new PassThrough({ highWaterMark: 1 }), { json, signal: controller.signal })
    const writing = output.line('without a reader')

    controller.abort(new Error('enough'))

    await expect(writing).rejects.toThrow('enough')
    await expect(output.line('nor this')).rejects.toThrow('enough')
  })

  it('rejects when its reader closes it', async () => {
    const stream = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    })
    stream.on('error', () => {})
    const output = createOutput(stream, { json })

    await expect(output.line('without a reader')).rejects.toBeInstanceOf(OutputClosed)
  })

  it('prints values as NDJSON, and no colours without a terminal', async () => {
    const stream = new PassThrough()
    const output = createOutput(stream, { json, signal: new AbortController().signal })

    await output.value({ a: 'x\ny' })
    await output.line(output.paint('red', 'plain'))

    expect(String(stream.read())).toBe('{"a":"x\\ny"}\nplain\n')
  })
  it('prints untrusted text with escapes, also beside its own styles, as no style can hide a text', async () => {
    const stream = Object.assign(new PassThrough(), { isTTY: true, getColorDepth: () => 8 })
    vi.stubEnv('FORCE_COLOR', '1')
    onTestFinished(() => void vi.unstubAllEnvs())
    const output = createOutput(stream, { json: false })

    await output.line(`${output.paint('red', 'a\u202Eb')}\tc\u001B[8md\u001B[2J`)
    await output.text('\u009B2J')
    await output.hint('\u2066')

    const [red, end, dim, bright] = ['\u001B[31m', '\u001B[39m', '\u001B[2m', '\u001B[22m']
    expect(String(stream.read())).toBe(
      `${red}a\\u202eb${end}\tc\\u001b[8md\\u001b[2J\n\\u009b2J${dim}\\u2066${bright}\n`,
    )
  })
})
