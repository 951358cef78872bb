import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
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
})
