import { setTimeout as after } from 'node:timers/promises'
import { errors } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FencedError, LogConflictError, LogInUseError } from '../../src/log/errors.ts'
import { MessageCursor } from '../../src/log/nats/server/message-cursor.ts'
import { retryTransient } from '../../src/log/nats/server/retry-transient.ts'
import { MESSAGE_ID } from '../../src/log/nats/server/publisher.ts'
import type { StreamPublication } from '../../src/log/nats/server/publisher.ts'
import type { Fence, Position } from '../../src/log/store/contract.ts'
import type { ProcessCommit } from '../../src/log/store/process-store.ts'
import { change } from '../operators/events.ts'
import { LogOfJournals } from './nats/opened-journals.ts'
import type { OpenedJournals } from './nats/opened-journals.ts'
import { NatsServer } from './nats/server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})
afterAll(() => server.remove())

const newLog = (lease?: number) => new LogOfJournals(server, `log${++logs}`, lease)

/** As when the process of an open log was killed, or is suspended. */
const loseLease = async ({ connection, claims }: OpenedJournals) => connection.leases.delete(claims.instance)

/** As when its process is suspended: nothing renews its lease. Returns a function that resumes it. */
function suspend({ connection: { leases } }: OpenedJournals): () => void {
  const put = leases.put.bind(leases)
  leases.put = async () => {
    throw new TypeError('suspended')
  }
  return () => {
    leases.put = put
  }
}

/** As when the server was away for longer than all leases. */
const expireLeases = ({ connection }: OpenedJournals) =>
  retryTransient(connection, () => connection.jsm.streams.purge(connection.names.leaseStream))

/** A message without what the server recognises it by. */
function withoutId({ fields = {}, ...message }: StreamPublication): StreamPublication {
  const { [MESSAGE_ID]: _, ...rest } = fields
  return { ...message, fields: rest }
}

/** Kills the server and starts it again. Resolves once a connection is there again. */
async function restarted({ nats }: OpenedJournals['connection']): Promise<void> {
  const reconnected = (async () => {
    for await (const { type } of nats.status()) if (type === 'reconnect') return
  })()
  await server.kill()
  await server.resume()
  await reconnected
}

const NAME = 'process:p'
const error = { name: 'Error', message: 'no luck' }

/** Commits to a process, one after the other. */
function committer(log: OpenedJournals, fence: Fence, cursor: Position, first: Position | null = null) {
  let expected = first
  return async (process: Partial<ProcessCommit>, more: object = {}) => {
    const whole = { checkpoint: 'm', state: [], timers: [], ...process }
    await log.commit(fence, { expect: expected, cursor, acknowledged: [], process: whole, ...more })
    expected = cursor
  }
}

/** All states of a process, by key. */
async function statesOf({ processes }: OpenedJournals): Promise<Readonly<Record<string, string>>> {
  const { states } = await processes.range(NAME, { prefix: '', limit: 1_000_000, maxLength: 1e9 })
  return Object.fromEntries(states.map(({ key, state }) => [key, state]))
}

/** The number of messages that the server has of some subjects. */
async function countOf({ connection: { jsm, names } }: OpenedJournals, filter: string): Promise<number> {
  const { state } = await jsm.streams.info(names.state, { subjects_filter: filter })
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
}

/** The payloads of all messages of the log's state. */
async function textsOf({ connection }: OpenedJournals): Promise<readonly string[]> {
  const texts: string[] = []
  const cursor = new MessageCursor(connection, { stream: connection.names.state })
  for await (const { data } of cursor.all()) texts.push(new TextDecoder().decode(data))
  return texts
}

describe('the claims of a log at a NATS server', () => {
  it('are one for each name, and name their owner', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const fence = await first.claims.claim('billing')
    await expect(second.claims.claim('billing')).rejects.toMatchObject({ claimed: 'billing', owner: 'first' })
    await expect(second.claims.claim('billing')).rejects.toBeInstanceOf(LogInUseError)
    expect(await second.claims.ownerOf('billing')).toBe('first')
    await first.claims.release(fence)
    expect(await second.claims.ownerOf('billing')).toBeNull()
    const taken = await second.claims.claim('billing')
    expect(taken.token).toBeGreaterThan(fence.token)
    await expect(first.claims.check(fence)).rejects.toBeInstanceOf(FencedError)
    await second.claims.check(taken)
  })

  it('are given to exactly one of many that claim at the same moment', async () => {
    const log = newLog()
    const opened = await Promise.all(Array.from({ length: 8 }, (_, n) => log.open(`owner ${n}`)))
    for (let round = 0; round < 10; round++) {
      const claims = await Promise.allSettled(opened.map(({ claims: each }) => each.claim(`name ${round}`)))
      const given = claims.filter(({ status }) => status === 'fulfilled')
      expect(given).toHaveLength(1)
      const owner = `owner ${claims.findIndex(({ status }) => status === 'fulfilled')}`
      const owners = claims.flatMap((claim) =>
        claim.status === 'rejected' && claim.reason instanceof LogInUseError ? [claim.reason.owner] : [],
      )
      expect(owners).toEqual(Array.from({ length: 7 }, () => owner))
    }
  })

  it('are waited for until their owner gives them up, by one after the other', async () => {
    const log = newLog()
    const [first, second, third] = [await log.open('1'), await log.open('2'), await log.open('3')]
    const fence = await first.claims.claim('billing')
    const { signal } = new AbortController()
    const waiting = [second, third].map(async ({ claims }) => {
      const own = await claims.claim('billing', signal)
      await claims.check(own)
      await claims.release(own)
      return own.token
    })
    await first.claims.release(fence)
    expect(new Set(await Promise.all(waiting)).size).toBe(2)
  })

  it('are over once the lease of their owner has run out, and the owner is fenced in all that it writes', async () => {
    const log = newLog(1_000)
    const [at] = log.append('1')
    const first = await log.open('first')
    const fence = await first.claims.claim(NAME)
    await first.streams.move([{ fence, expect: null, position: 'p1' }])
    await first.commit(fence, { expect: null, cursor: at ?? '', acknowledged: [] })
    const second = await log.open('second')
    suspend(first)
    const taken = await second.claims.claim(NAME, new AbortController().signal)
    await second.streams.move([{ fence: taken, expect: 'p1', position: 'p2' }])

    const late = [
      first.commit(fence, { expect: at ?? '', cursor: at ?? '', acknowledged: [at ?? ''] }),
      first.streams.move([{ fence, expect: 'p1', position: 'late' }]),
      first.streams.check([{ fence, expect: 'p1' }]),
      first.processes.pause(fence),
      first.claims.check(fence),
    ]
    for (const write of await Promise.allSettled(late)) {
      expect(write).toMatchObject({ status: 'rejected', reason: expect.any(FencedError) })
    }
    await first.claims.release(fence)
    expect(await second.claims.ownerOf(NAME)).toBe('second')
    expect(await second.readers.get(NAME)).toEqual({ cursor: at, acknowledged: [] })
    expect(await second.streams.positions([NAME])).toEqual(['p2'])
    await second.claims.check(taken)
  })

  it('stay with an owner that lives where leases have run out while the server was down', async () => {
    const log = newLog(5_000)
    const [first, second] = [await log.open('first'), await log.open('second')]
    await first.claims.claim('billing')
    await second.claims.claim('mailing')
    const resume = suspend(first)
    await restarted(second.connection)
    await expireLeases(second)
    const claim = second.claims.claim('billing')
    resume()
    await expect(claim).rejects.toMatchObject({ owner: 'first' })
  })

  it.each(['another name', 'nothing'])(
    'stay with an owner that lives where leases have run out while the server was suspended, and one that waits for them holds %s',
    async (held) => {
      const log = newLog(2_000)
      const [first, second] = [await log.open('first'), await log.open('second')]
      const fence = await first.claims.claim('billing')
      if (held !== 'nothing') await second.claims.claim('mailing')
      const stop = new AbortController()
      const waiting = second.claims.claim('billing', stop.signal)
      // It has looked at the owner by then.
      await expect(second.claims.claim('billing')).rejects.toMatchObject({ owner: 'first' })
      const resume = suspend(first)
      process.kill(server.pid, 'SIGSTOP')
      await after(2_500)
      process.kill(server.pid, 'SIGCONT')
      const { jsm, names } = second.connection
      const query = { last_by_subj: names.lease(first.claims.instance) }
      await expect
        .poll(() => retryTransient(second.connection, () => jsm.streams.getMessage(names.leaseStream, query)))
        .toBeNull()
      const claim = second.claims.claim('billing')
      resume()
      await expect(claim).rejects.toMatchObject({ owner: 'first' })
      await first.claims.check(fence)
      stop.abort(new Error('enough'))
      await expect(waiting).rejects.toThrow('enough')
    },
  )

  it('stay with an owner that lives where a log is opened after leases have run out', async () => {
    const log = newLog(2_000)
    const first = await log.open('first')
    const fence = await first.claims.claim('billing')
    const resume = suspend(first)
    await expireLeases(first)
    const second = await log.open('second')
    const claims = [second.claims.claim('billing'), second.readers.remove('billing')]
    resume()
    for (const claim of claims) await expect(claim).rejects.toMatchObject({ owner: 'first' })
    await first.claims.check(fence)
  })

  it('are given to a log that is opened later once an owner that is gone had the time of a lease', async () => {
    const log = newLog(2_000)
    const first = await log.open('first')
    await first.claims.claim('billing')
    suspend(first)
    await expireLeases(first)
    const opened = performance.now()
    const second = await log.open('second')
    const stop = new AbortController()
    const [waiting, removed] = [
      second.claims.claim('billing', stop.signal),
      second.readers.remove('billing').then(() => 'removed'),
    ]
    stop.abort(new Error('enough'))
    await expect(Promise.race([waiting, removed])).rejects.toThrow('enough')
    await removed
    expect(performance.now() - opened).toBeGreaterThanOrEqual(2_000)
    await second.claims.claim('billing')
  })

  it('have their lease renewed as soon as the server is back', async () => {
    const log = newLog(60_000)
    const first = await log.open('first')
    const fence = await first.claims.claim('billing')
    const { connection } = first
    const { names, jsm } = connection
    const renewed = async () => {
      const query = { last_by_subj: names.lease(first.claims.instance) }
      return (
        (await retryTransient(connection, () => jsm.streams.getMessage(names.leaseStream, query)))?.seq ?? 0
      )
    }
    const before = await renewed()
    await restarted(connection)
    await expect.poll(renewed, { timeout: 30_000 }).toBeGreaterThan(before)
    await first.claims.check(fence)
  })

  it('keep a reader from being removed, also by its own log, and name the owner that has overtaken this one', async () => {
    const log = newLog()
    const [at = ''] = log.append('1')
    const [first, second] = [await log.open('first'), await log.open('second')]
    const fence = await first.claims.claim('billing')
    await first.commit(fence, { expect: null, cursor: at, acknowledged: [] })
    await expect(first.readers.remove('billing')).rejects.toMatchObject({ owner: 'first' })
    await loseLease(first)
    const taken = await second.claims.claim('billing')
    await expect(first.readers.remove('billing')).rejects.toMatchObject({ owner: 'second' })
    await second.claims.release(taken)
    await first.readers.remove('billing')
    expect(await second.readers.get('billing')).toBeUndefined()
  })

  it('stay with an owner whose lease ran out while no other wanted them', async () => {
    const log = newLog()
    const first = await log.open('first')
    const fence = await first.claims.claim('billing')
    await loseLease(first)
    await first.streams.move([{ fence, expect: null, position: 'p1' }])
    expect(await first.streams.positions(['billing'])).toEqual(['p1'])
  })
})

describe('the upstream positions of a log at a NATS server', () => {
  it('are moved where they stand as expected, several at once', async () => {
    const log = newLog()
    const first = await log.open('first')
    const [a, b] = [await first.claims.claim('a'), await first.claims.claim('b')]
    const moves = await first.streams.check([
      { fence: a, expect: null, position: 'a1' },
      { fence: b, expect: null, position: 'b1' },
      { fence: a, expect: 'a1', position: 'a2' },
    ])
    await first.streams.move(moves)
    expect(await first.streams.positions(['a', 'b', 'c'])).toEqual(['a2', 'b1', null])
    await expect(first.streams.check([{ fence: a, expect: 'a1' }])).rejects.toBeInstanceOf(LogConflictError)
    await expect(first.streams.move(moves)).rejects.toBeInstanceOf(LogConflictError)
    expect(await first.streams.positions(['a', 'b'])).toEqual(['a2', 'b1'])
  })

  it('take one message however often they moved', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const fence = await first.claims.claim('a')
    let position: string | null = null
    for (let n = 0; n < 1_500; n++) {
      await first.streams.move([{ fence, expect: position, position: `p${n}` }])
      position = `p${n}`
    }
    expect(await countOf(first, first.connection.names.journal('a'))).toBeLessThan(1_000)
    expect(await second.streams.positions(['a'])).toEqual(['p1499'])
    await first.claims.release(fence)
    await second.streams.check([{ fence: await second.claims.claim('a'), expect: 'p1499' }])
  })
})

describe('a commit to a journal at a NATS server', () => {
  it('keeps all of itself: cursor, states, timers, dead letters and entries', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const positions = log.append('1', '2', '3')
    const [at1 = '', at2 = '', at3 = ''] = positions
    const fence = await first.claims.claim(NAME)
    const hostile = ['', '"', 'a\0b', '\ud800', '😀', 'é', '\u0001'.repeat(1_000), '__proto__']
    const commit = committer(first, fence, at1)
    await commit(
      {
        checkpoint: 'x\ud800',
        state: hostile.map((key) => ({ key, state: JSON.stringify(key) })),
        timers: [{ key: '\ud800', name: 'n', clock: 'event', due: 5, cause: 'c"', data: '"\\ud800"' }],
      },
      {
        acknowledged: [at3],
        deadLetters: [{ position: at2, error, attempts: 2 }],
        entries: [newEntry(change('out', 'q'))],
      },
    )
    expect(log.published).toEqual([change('out', 'q').id])
    for (const each of [first, second]) {
      expect(await each.readers.get(NAME)).toMatchObject({ cursor: at1, acknowledged: [at3] })
      expect((await each.readers.get(NAME))?.process?.checkpoint).toBe('x\ud800')
      expect(await each.processes.states(NAME, hostile)).toEqual(hostile.map((key) => JSON.stringify(key)))
      expect(await each.processes.timers(NAME, { clock: 'event', until: 9, limit: 9 })).toEqual([
        { key: '\ud800', name: 'n', clock: 'event', due: 5, cause: 'c"', data: '"\\ud800"' },
      ])
      expect(await each.deadLetters.list(NAME, null, 9)).toEqual([
        { entry: log.entries.entryAt(at2), error, attempts: 2, failed: 1_000, isRedelivered: false },
      ])
    }
  })

  it('of which the acknowledgement is lost is there once', async () => {
    const log = newLog()
    const first = await log.open('first')
    const [at1 = '', at2 = ''] = log.append('1', '2')
    const fence = await first.claims.claim(NAME)
    await committer(first, fence, at1)({ state: [{ key: 'n', state: '0' }] })
    const { names } = first.connection
    const before = await countOf(first, names.journal(NAME))
    const { publisher } = first.connection
    const publish = publisher.publish.bind(publisher)
    let lost = 0
    publisher.publish = async (message) => {
      // As when the time is over in which the server knows the id of the first one.
      if (lost > 0) return publish(withoutId(message))
      await publish(message)
      lost += 1
      throw new errors.TimeoutError()
    }
    await first.commit(fence, { expect: at1, cursor: at2, acknowledged: [] })
    expect(lost).toBe(1)
    expect(await countOf(first, names.journal(NAME))).toBe(before + 1)
    expect(await first.readers.get(NAME)).toMatchObject({ cursor: at2, acknowledged: [] })
  })

  it('of which the acknowledgement is lost is there once also where another message has followed it', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at1 = '', at2 = ''] = log.append('1', '2')
    const fence = await first.claims.claim('billing')
    await first.commit(fence, {
      expect: null,
      cursor: at1,
      acknowledged: [],
      deadLetters: [{ position: at1, error, attempts: 1 }],
    })
    const { publisher } = first.connection
    const publish = publisher.publish.bind(publisher)
    let lost = 0
    publisher.publish = async (message) => {
      if (lost > 0) return publish(withoutId(message))
      await publish(message)
      lost += 1
      expect(await second.deadLetters.redeliver('billing', 'all')).toBe(1)
      throw new errors.TimeoutError()
    }
    await first.commit(fence, { expect: at1, cursor: at2, acknowledged: [] })
    expect(await second.readers.get('billing')).toEqual({ cursor: at2, acknowledged: [] })
    expect((await first.deadLetters.redeliveries('billing', 0, 9)).deadLetters).toHaveLength(1)
  })

  it('is not disturbed by what others do to the dead letters meanwhile', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const positions = log.append(...Array.from({ length: 60 }, (_, n) => String(n)))
    const [start = ''] = positions
    const fence = await first.claims.claim('billing')
    await first.commit(fence, { expect: null, cursor: start, acknowledged: [] })
    const writing = async () => {
      for (const position of positions) {
        await first.commit(fence, {
          expect: start,
          cursor: start,
          acknowledged: [],
          deadLetters: [{ position, error, attempts: 1 }],
        })
      }
    }
    let [marked, removed] = [0, 0]
    const changing = async () => {
      for (let n = 0; n < 10; n++) {
        marked += await second.deadLetters.redeliver('billing', 'all')
        if (n % 3 === 2) removed += await second.deadLetters.remove('billing', 'all')
      }
    }
    await Promise.all([writing(), changing()])
    const left = await second.deadLetters.list('billing', null, 100)
    expect(left.length + removed).toBe(60)
    expect(await first.deadLetters.list('billing', null, 100)).toEqual(left)
    expect(left.filter(({ isRedelivered }) => isRedelivered).length).toBeLessThanOrEqual(marked)
  })

  it('has its entries published by the next owner where its own could not', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = ''] = log.append('1')
    const fence = await first.claims.claim(NAME)
    const commit = committer(first, fence, at)
    await commit({}, { entries: [newEntry(change('a'))] })
    log.beforePublishing = async () => {
      throw new TypeError('the process is killed')
    }
    await expect(commit({ checkpoint: 'last' }, { entries: [newEntry(change('b'))] })).rejects.toThrow(
      'killed',
    )
    await loseLease(first)
    log.beforePublishing = async () => {}
    await second.claims.claim(NAME)
    expect(log.published).toEqual([change('a').id, change('b').id])
    expect((await second.readers.get(NAME))?.process?.checkpoint).toBe('last')
    expect(log.entries.size).toBe(3)
  })
})

describe('the dead letters of a log at a NATS server', () => {
  it('have entries of any length', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = '', next = ''] = log.append('x'.repeat(2_500_000), '2')
    const fence = await first.claims.claim('billing')
    const letters = [at, next].map((position) => ({ position, error, attempts: 1 }))
    const commit = { expect: null, cursor: at, acknowledged: [] }
    await first.commit(fence, { ...commit, deadLetters: letters })
    const stored = await second.deadLetters.list('billing', null, 9)
    expect(stored.map(({ entry }) => entry)).toEqual([log.entries.entryAt(at), log.entries.entryAt(next)])
    const { names } = first.connection
    expect(await countOf(first, names.allDeadLetters)).toBeGreaterThan(3)
    await first.commit(fence, { ...commit, expect: at, redelivered: [at] })
    await expect.poll(() => countOf(first, names.allDeadLetters)).toBe(1)
    expect(await second.deadLetters.remove('billing', 'all')).toBe(1)
    expect(await countOf(first, names.allDeadLetters)).toBe(0)
  })

  it('are found again by their owner, however long it has not used its journal', async () => {
    const log = new LogOfJournals(server, `log${++logs}`, 30_000, { messages: 512, bytes: 1e6, idle: 0 })
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = ''] = log.append('1')
    const fence = await first.claims.claim('billing')
    await first.commit(fence, {
      expect: null,
      cursor: at,
      acknowledged: [],
      deadLetters: [{ position: at, error, attempts: 1 }],
    })
    expect(await first.deadLetters.hasRedelivery('billing', 0)).toBe(false)
    await second.deadLetters.redeliver('billing', 'all')
    expect(await first.deadLetters.hasRedelivery('billing', 0)).toBe(true)
  })

  it('of a source are forgotten with all copies of its entries, and so is what commits have appended because of it', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at1 = '', at2 = ''] = log.append('secret '.repeat(300_000), 'kept')
    const { source } = change('any')
    const fence = await first.claims.claim(NAME)
    const commit = committer(first, fence, at1)
    const copied = { deadLetters: [at1, at2].map((position) => ({ position, error, attempts: 1 })) }
    await commit({ state: [{ key: 'a', state: '1' }] }, copied)
    await commit({}, { entries: [newEntry(change('kept because of another', 'other'))] })
    await commit({ state: [{ key: 'b', state: '2' }] }, { entries: [newEntry(change('secret'))] })
    await commit({ checkpoint: 'last', state: [{ key: 'a', state: '3' }] })
    expect((await second.readers.get(NAME))?.process?.checkpoint).toBe('last')

    await second.forget(source)

    expect(await first.deadLetters.list(NAME, null, 9)).toEqual([])
    expect(await countOf(first, first.connection.names.allDeadLetters)).toBe(0)
    const texts = await textsOf(first)
    expect(texts.filter((text) => text.includes('secret'))).toEqual([])
    expect(texts.length).toBeGreaterThan(0)
    await commit({ state: [{ key: 'c', state: '4' }] })
    for (const each of [first, second, await log.open('third')]) {
      expect(await statesOf(each)).toEqual({ a: '3', b: '2', c: '4' })
    }
  })
})

describe('the journal of a log at a NATS server', () => {
  it('stays short over 3,000 commits, and a new owner begins with it within a second or so', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = ''] = log.append('1')
    const commit = committer(first, await first.claims.claim(NAME), at)
    for (let n = 0; n < 3_000; n++) {
      await commit({
        checkpoint: String(n),
        state: [{ key: `key ${n % 700}`, state: n % 7 === 3 ? null : `{"n":${n}}` }],
        timers: [{ key: `key ${n % 50}`, name: 'n', clock: 'event', due: n, cause: 'c', data: null }],
      })
    }
    const expected = await statesOf(first)
    expect(await countOf(first, first.connection.names.journal(NAME))).toBeLessThan(1_000)
    expect(await countOf(first, first.connection.names.snapshots(NAME))).toBeLessThan(20)
    await loseLease(first)
    const started = performance.now()
    await second.claims.claim(NAME)
    const states = await statesOf(second)
    const elapsed = performance.now() - started
    expect(states).toEqual(expected)
    expect(Object.keys(states)).toHaveLength(600)
    expect((await second.readers.get(NAME))?.process?.checkpoint).toBe('2999')
    expect(await second.processes.timers(NAME, { clock: 'event', until: 1e9, limit: 99 })).toHaveLength(50)
    expect(elapsed).toBeLessThan(5_000)
  })

  it('is followed while it is made short, without a change missed', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = ''] = log.append('1')
    const commit = committer(first, await first.claims.claim(NAME), at)
    const last = 3_000
    const writing = async () => {
      for (let n = 0; n <= last; n++) {
        await commit({ state: [{ key: `key ${n % 10}`, state: String(n) }] })
      }
    }
    const seen = new Map<string, number>()
    const following = async () => {
      let position = await second.processes.start()
      const { signal } = new AbortController()
      while (Math.max(...seen.values(), -1) < last) {
        await second.processes.wait(NAME, position, signal)
        const page = await second.processes.changes(NAME, position, { limit: 7 })
        for (const { key, state } of page.changes) {
          expect(Number(state)).toBeGreaterThan(seen.get(key) ?? -1)
          seen.set(key, Number(state))
        }
        position = page.position
      }
    }
    await Promise.all([writing(), following()])
    expect(Object.fromEntries(seen)).toEqual(
      Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`key ${(last - n) % 10}`, last - n])),
    )
  })

  it('is whole after a crash between the parts of a snapshot and the message that names it', async () => {
    const log = newLog()
    const [first, second] = [await log.open('first'), await log.open('second')]
    const [at = ''] = log.append('1')
    const commit = committer(first, await first.claims.claim(NAME), at)
    const { names, publisher } = first.connection
    const publish = publisher.publish.bind(publisher)
    let stored = 0
    publisher.publish = async (message) => {
      if (stored > 0) throw new TypeError('the process is killed')
      const ack = await publish(message)
      if (message.subject.startsWith(names.snapshots(NAME).slice(0, -1))) stored += 1
      return ack
    }
    let committed = -1
    await expect(
      (async () => {
        for (let n = 0; n < 2_000; n++) {
          await commit({ state: [{ key: `key ${n % 100}`, state: JSON.stringify('x'.repeat(9_000) + n) }] })
          committed = n
        }
      })(),
    ).rejects.toThrow('killed')
    expect(committed).toBeGreaterThan(300)
    expect(await countOf(second, names.snapshots(NAME))).toBe(1)
    await loseLease(first)
    const taken = await second.claims.claim(NAME)
    const states = await statesOf(second)
    expect(Object.keys(states)).toHaveLength(100)
    for (const [key, state] of Object.entries(states)) {
      const n = Number(key.slice(4))
      expect(JSON.parse(state)).toBe('x'.repeat(9_000) + (n + 100 * Math.floor((committed - n) / 100)))
    }
    // Its own snapshot takes the place of the parts.
    const go = committer(second, taken, at, at)
    for (let n = 0; n < 1_000; n++) await go({ state: [{ key: 'key 0', state: String(n) }] })
    await second.journals.of(NAME).shorten()
    expect(await countOf(second, names.journal(NAME))).toBeLessThan(950)
    const parts = await countOf(second, names.snapshots(NAME))
    expect(parts).toBeGreaterThan(1)
    expect(parts).toBeLessThan(6)
    const third = await log.open('third')
    expect(await statesOf(third)).toEqual(await statesOf(second))
  })

  it('survives kills of the server in the middle of commits', async () => {
    const log = newLog(60_000)
    const first = await log.open('first')
    const [at = ''] = log.append('1')
    const commit = committer(first, await first.claims.claim(NAME), at)
    let last = -1
    const done = new AbortController()
    const writing = async () => {
      for (let n = 0; !done.signal.aborted; n++) {
        await commit({ checkpoint: String(n), state: [{ key: `key ${n % 20}`, state: String(n) }] })
        last = n
      }
    }
    const killing = async () => {
      for (let n = 0; n < 3; n++) {
        const before = last
        await expect.poll(() => last, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before + 50)
        await server.kill()
        await server.resume()
      }
      const before = last
      await expect.poll(() => last, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before + 10)
      done.abort()
    }
    await Promise.all([writing(), killing()])
    const second = await log.open('second')
    expect((await second.readers.get(NAME))?.process?.checkpoint).toBe(String(last))
    const { changes } = await second.processes.changes(NAME, await second.processes.start(), { limit: 100 })
    expect(changes.map(({ state }) => Number(state))).toEqual(
      Array.from({ length: 20 }, (_, n) => last - 19 + n),
    )
    // Each commit made one change: none was there twice.
    expect(changes.at(-1)?.position).toContain(`.${last + 1}.`)
  })
})
