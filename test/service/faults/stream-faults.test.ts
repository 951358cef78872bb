import { gunzipSync } from 'node:zlib'
import type { TaskGroup } from 'rivulet'
import type { Fault, ResearchServiceOptions } from 'rivulet/service'
import { ManualClock } from 'rivulet/service'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { HeldProcessor, running } from '../running.ts'
import { Wire, wire } from '../wire.ts'

describe('the fault cut', () => {
  it('in a line interrupts the JSON of the next event', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'cut', at: 'line', after: 1, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(chunked.isComplete).toBe(false)
    expect(chunked.missing).toBe(0)
    const tail = restOf(content, frames, 1)
    expect(tail.length).toBeGreaterThan(frames[1].indexOf('\ndata: ') + 10)
    expect(tail.length).toBeLessThan(frames[1].length - 10)
  })

  it('in a character interrupts the bytes of one', async () => {
    const { caller, path, frames } = await finished({ inputs: ['eins', 'zweiundzwanzig Möwen', 'drei'] })
    caller.service.faults.add({ kind: 'cut', at: 'character', after: 1, times: 1 })

    const { content } = await wire(caller, path)

    const tail = restOf(content, frames, 1)
    expect(tail.at(-1)).toBe(Buffer.from('ö')[0])
    expect(tail.subarray(0, -1).toString()).toMatch(/zweiundzwanzig M$/)
  })

  it('in a character interrupts the line if every character has one byte', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'cut', at: 'character', after: 0, times: 1 })

    const { content } = await wire(caller, path)

    expect(restOf(content, frames, 0).length).toBeGreaterThan(0)
  })

  it('in a line never interrupts a character', async () => {
    const { caller, path } = await finished({ inputs: ['ö'.repeat(1_000)] })
    caller.service.faults.add({ kind: 'cut', at: 'line', times: 1 })

    const { content } = await wire(caller, path)

    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(content)).not.toThrow()
    expect(content.toString()).toMatch(/ö$/)
  })

  it('in a chunk sends less than the declared size of the chunk', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'cut', at: 'chunk', after: 2, times: 1 })

    const { content, chunked } = await wire(caller, path)

    const tail = restOf(content, frames, 2)
    expect(chunked.missing).toBe(Buffer.byteLength(frames[2]) - tail.length)
    expect(chunked.missing).toBeGreaterThan(0)
  })

  it('strikes an open stream that has sent enough events when it is armed', async () => {
    const { caller, path } = await active()
    const stream = new Wire(caller, path)
    await stream.events(1)

    caller.service.faults.add({ kind: 'cut', after: 1, times: 1 })
    await stream.closed

    expect(stream.chunked.isComplete).toBe(false)
  })

  it('strikes only streams with its path', async () => {
    const { caller, path, id, frames } = await finished()
    caller.service.faults.add({ kind: 'cut', path: `/v1/tasks/groups/${id}/events` })

    const spared = await wire(caller, path)
    const cut = await wire(caller, `/v1/tasks/groups/${id}/events`)

    expect(spared.chunked.isComplete).toBe(true)
    expect(restOf(spared.content, frames, frames.length).length).toBe(0)
    expect(cut.chunked.isComplete).toBe(false)
  })
})

describe('the fault stall', () => {
  it('keeps the stream open and never sends anything again', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const clock = new ManualClock()
    const { caller, path, frames } = await finished({ clock })
    caller.service.faults.add({ kind: 'stall', after: 2, times: 1 })

    const stream = new Wire(caller, path)
    await stream.events(2)
    clock.advance(3 * 3_600_000)
    vi.advanceTimersByTime(60_000)
    // Another response arrives after everything that was in transit.
    await caller.get('/v1/monitors')

    expect(restOf(stream.content, frames, 2).length).toBe(0)
    expect(stream.isOpen).toBe(true)
  })

  it('does not delay the closing of the service', async () => {
    const { caller, path } = await finished()
    caller.service.faults.add({ kind: 'stall', after: 1 })
    const stream = new Wire(caller, path)
    await stream.events(1)

    await caller.service.close()
    await stream.closed

    expect(stream.chunked.isComplete).toBe(false)
  })
})

describe('the fault close', () => {
  it('closes the stream cleanly without an event', async () => {
    const { caller, path } = await finished()
    caller.service.faults.add({ kind: 'close', times: 1 })

    const { status, header, content, chunked } = await wire(caller, path).then((answer) => ({
      status: answer.status,
      header: answer.header('content-type'),
      content: answer.content.toString(),
      chunked: answer.chunked,
    }))

    expect({ status, header, isComplete: chunked.isComplete }).toEqual({
      status: 200,
      header: 'text/event-stream',
      isComplete: true,
    })
    expect(content).not.toContain('data:')
  })

  it('closes the stream cleanly after the given number of events', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'close', after: 2, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(chunked.isComplete).toBe(true)
    expect(restOf(content, frames, 2).length).toBe(0)
  })
})

describe('the fault slow', () => {
  it('sends the next event in pieces, and the others normally', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'slow', after: 1, bytes: 16, interval: 0, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(restOf(content, frames, frames.length).length).toBe(0)
    const pieces = chunked.chunks.filter(({ length }) => length <= 16)
    expect(pieces.length).toBeGreaterThanOrEqual(Math.floor(frames[1].length / 16))
    expect(Buffer.concat(pieces).toString()).toContain(frames[1].slice(0, 32))
    expect(chunked.isComplete).toBe(true)
  })

  it('sends the rest after 1,000 pieces at once', async () => {
    const { caller, path, frames } = await finished({ inputs: ['x'.repeat(20_000)] })
    caller.service.faults.add({ kind: 'slow', interval: 0, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(restOf(content, frames, 1).length).toBe(0)
    expect(chunked.chunks.filter(({ length }) => length === 1)).toHaveLength(1_000)
    expect(chunked.chunks.at(-1)?.length).toBe(frames[0].length - 1_000)
  })

  it('lets another fault strike after the event', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'slow', bytes: 64, interval: 0 })
    caller.service.faults.add({ kind: 'cut', after: 2, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(restOf(content, frames, 2).length).toBe(0)
    expect(chunked.isComplete).toBe(false)
  })
})

describe('the fault malformed', () => {
  it('truncates the JSON of the next event, which is framed correctly', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'malformed', after: 1, times: 1 })

    const { content, chunked } = await wire(caller, path)

    const blocks = content
      .toString()
      .split('\n\n')
      .filter((block) => block.includes('data: '))
    const readable = blocks.map((block) => isJson(block.slice(block.indexOf('data: ') + 6)))
    expect(readable).toEqual([true, false, true])
    expect(blocks[1]?.split('\n')[0]).toBe(frames[1].split('\n')[0])
    expect(chunked.isComplete).toBe(true)
  })
})

describe('the fault gzip', () => {
  it('compresses a stream, and flushes every event', async () => {
    const { caller, path, complete } = await active()
    caller.service.faults.add({ kind: 'gzip', times: 1 })
    const reader = await caller.stream(path)
    const first = await reader.next()
    complete()
    const second = await reader.next()

    expect(reader.headers.get('content-encoding')).toBe('gzip')
    expect(first?.data.type).toBe('task_group_status')
    expect(second?.data.type).toBe('task_run.state')
  })

  it('is valid gzip to the last byte', async () => {
    const { caller, path, frames } = await finished()
    caller.service.faults.add({ kind: 'gzip', times: 1 })

    const { content } = await wire(caller, path)

    expect(restOf(gunzipSync(content), frames, frames.length).length).toBe(0)
  })

  it('can be cut as well, right after an event', async () => {
    const { caller, path } = await finished()
    caller.service.faults.add({ kind: 'gzip', times: 1 })
    caller.service.faults.add({ kind: 'cut', after: 2, times: 1 })

    const { content, chunked } = await wire(caller, path)

    expect(chunked.isComplete).toBe(false)
    const unzipped = gunzipSync(content, { finishFlush: 2 }).toString()
    expect(unzipped.split('\ndata: ')).toHaveLength(3)
  })
})

describe('the fault repeat-events', () => {
  it.each([
    [undefined, 1],
    [1, 1],
    [2, 0],
    [9, 0],
  ])('resumes the given number of events before the position (count: %s)', async (count, first) => {
    const { caller, path, frames } = await finished()
    const [, second] = frames.map(idOf)
    caller.service.faults.add({ kind: 'repeat-events', times: 1, ...(count !== undefined && { count }) })

    const repeated = await wire(caller, `${path}&last_event_id=${second}`)
    const after = await wire(caller, `${path}&last_event_id=${second}`)

    expect(restOf(repeated.content, frames.slice(first), 3 - first).length).toBe(0)
    expect(restOf(after.content, frames.slice(2), 1).length).toBe(0)
  })

  it('repeats statuses too, from the first', async () => {
    const { caller, id } = await finished()
    const path = `/v1/tasks/groups/${id}/events`
    const all = await caller.events(path)
    caller.service.faults.add({ kind: 'repeat-events', count: 100 })

    const repeated = await caller.events(`${path}?last_event_id=${encodeURIComponent(all.at(-1)?.id ?? '')}`)

    expect(repeated).toEqual(all)
  })

  it('strikes only resumed streams with its path', async () => {
    const { caller, id, path, frames } = await finished()
    const [first] = frames.map(idOf)
    caller.service.faults.add({ kind: 'repeat-events', path: `/v1/tasks/groups/${id}/events` })

    const begun = await wire(caller, `/v1/tasks/groups/${id}/events?last_event_id=`)
    const spared = await wire(caller, `${path}&last_event_id=${first}`)

    expect(begun.status).toBe(200)
    expect(restOf(spared.content, frames.slice(1), 2).length).toBe(0)
    expect(caller.service.faults.struck).toEqual({})
  })
})

describe('the fault deleted-group', () => {
  it('ends all streams of a group once one has sent enough events, and requests get a 404', async () => {
    const { caller, path, id, complete } = await active()
    const other = await caller.group()
    const runs = await caller.stream(`/v1beta/tasks/groups/${id}/runs`)
    const events = new Wire(caller, path)
    await events.events(1)
    caller.service.faults.add({ kind: 'deleted-group', after: 2 })

    complete()
    await Promise.all([runs.rest(), events.closed])
    const [gone, resumed, there] = [
      await caller.get(`/v1/tasks/groups/${id}`),
      await caller.get(`/v1beta/tasks/groups/${id}/runs`),
      await caller.get(`/v1/tasks/groups/${other}`),
    ]

    expect(events.chunked.isComplete).toBe(true)
    expect(events.content.toString().split('\ndata: ')).toHaveLength(1 + 2)
    expect([gone.status, resumed.status, there.status]).toEqual([404, 404, 200])
    expect(gone.body.error.message).toBe(`Task group not found: ${id}`)
  })

  it('ends after the given number of requests', async () => {
    const { caller, id } = await finished()
    caller.service.faults.add({ kind: 'deleted-group', group: id, times: 2 })
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await caller.get<TaskGroup>(`/v1/tasks/groups/${id}`)).status)
    expect(statuses).toEqual([404, 404, 200])
  })

  it('does not strike a request for an unknown group, an unknown path or another method', async () => {
    const { caller, id } = await finished()
    caller.service.faults.add({ kind: 'deleted-group', times: 1 })
    const headers = { 'x-api-key': caller.service.apiKey }
    const statuses = [
      (await caller.get('/v1/tasks/groups/tgrp_unknown')).status,
      (await caller.get(`/v1/tasks/groups/${id}/whatever`)).status,
      (await caller.send(`/v1/tasks/groups/${id}`, { method: 'DELETE', headers })).status,
    ]
    expect(statuses).toEqual([404, 404, 405])
    expect(caller.service.faults.struck).toEqual({})
    expect((await caller.get(`/v1/tasks/groups/${id}`)).status).toBe(404)
  })

  it('does not affect other groups', async () => {
    const { caller, id } = await finished()
    caller.service.faults.add({ kind: 'deleted-group', group: 'tgrp_other' })
    const answer = await caller.get(`/v1/tasks/groups/${id}`)
    expect(answer.status).toBe(200)
  })
})

describe('a stream of several cached pages', () => {
  const inputs = Array.from({ length: 600 }, (_, index) => `Frage ${index}: wie groß?`)

  it.each<[Fault, number, boolean]>([
    [{ kind: 'cut', after: 300, times: 1 }, 300, false],
    [{ kind: 'close', after: 599, times: 1 }, 599, true],
    [{ kind: 'deleted-group', after: 301 }, 301, true],
  ])('is struck after exactly the given number of events: %j', async (fault, count, isComplete) => {
    const { caller, path, frames } = await finished({ inputs })
    caller.service.faults.add(fault)

    const { content, chunked } = await wire(caller, path)

    expect(restOf(content, frames, count).length).toBe(0)
    expect(chunked.isComplete).toBe(isComplete)
  })

  it('is struck within events by one fault after the other, and is complete when they are over', async () => {
    const { caller, path, frames } = await finished({ inputs })
    caller.service.faults.add({ kind: 'cut', at: 'character', after: 299, times: 1 })
    caller.service.faults.add({ kind: 'cut', at: 'line', after: 301, times: 1 })

    const inCharacter = await wire(caller, path)
    const inLine = await wire(caller, path)
    const { content, chunked } = await wire(caller, path)

    expect(restOf(inCharacter.content, frames, 299).at(-1)).toBe(Buffer.from('ß')[0])
    const tail = restOf(inLine.content, frames, 301).toString()
    expect(tail).not.toBe('')
    expect(frames.slice(301).join('').startsWith(tail)).toBe(true)
    expect(restOf(content, frames, 600).length).toBe(0)
    expect(chunked.isComplete).toBe(true)
  })

  it('counts events that were sent before the fault was armed', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const id = await caller.group()
    await caller.add(id, ...inputs)
    const complete = async (runs: number) => {
      for (let n = 0; n < runs; n++) (await processor.next()).complete()
    }
    await complete(597)
    const stream = new Wire(caller, `/v1/tasks/groups/${id}/runs`)
    await stream.events(597)

    caller.service.faults.add({ kind: 'cut', after: 598, times: 1 })
    await complete(3)
    await stream.closed

    expect(stream.chunked.isComplete).toBe(false)
    expect(stream.content.toString().split('\ndata: ')).toHaveLength(1 + 598)
  })
})

const QUESTIONS = ['one', 'two', 'three']

/** A group whose runs have all ended, the stream of its runs, and its encoded events. */
async function finished({
  inputs = QUESTIONS,
  ...options
}: Partial<ResearchServiceOptions> & { readonly inputs?: readonly string[] } = {}) {
  const caller = await running(options)
  const id = await caller.group()
  await caller.add(id, ...inputs)
  const path = `/v1beta/tasks/groups/${id}/runs?include_input=true`
  const { content } = await wire(caller, path)
  // The retry field is before the first event.
  const [, ...blocks] = content.toString().split('\n\n')
  const frames = blocks.slice(0, -1).map((block) => `${block}\n\n`)
  return { caller, id, path, frames: frames as [string, string, string] }
}

/** A group with two runs, of which the test ends the first, and the stream of its events. */
async function active() {
  const processor = new HeldProcessor()
  const caller = await running({ processor })
  const id = await caller.group()
  await caller.add(id, 'one', 'two')
  const run = await processor.next()
  return { caller, id, path: `/v1/tasks/groups/${id}/events`, complete: () => run.complete() }
}

/** The bytes after the first events, which must be unchanged. */
function restOf(content: Buffer, frames: readonly string[], count: number): Buffer {
  const text = Buffer.from(`retry: 20\n\n${frames.slice(0, count).join('')}`)
  expect(content.subarray(0, text.length).toString()).toBe(text.toString())
  return content.subarray(text.length)
}

/** The position to resume after an event. */
function idOf(frame: string): string {
  const [, id = ''] = /^id: (.+)$/m.exec(frame) ?? []
  return encodeURIComponent(id)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
