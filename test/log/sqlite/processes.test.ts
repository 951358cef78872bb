import { execFile } from 'node:child_process'
import { copyFileSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import type { LogStore, Fence } from 'rivulet/log/store'
import { FencedError, LogInUseError, openLog as openEventLog } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { appendTo, detections, readAll } from './events.ts'
import { startLogProcess } from './processes.ts'
import { openLog, openStore, scratchFile, scratchFolder } from './scratch.ts'

/** Resolves once the process is suspended. */
async function suspended(pid: number | undefined): Promise<void> {
  for (;;) {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-p', String(pid)])
    if (stdout.startsWith('T')) return
  }
}

describe('a claim of another process', () => {
  it('is refused with the name of its owner, also while that is suspended', async () => {
    const file = scratchFile()
    const owner = startLogProcess(file)
    await owner.call('claim', 's')
    const log = openLog(file)
    const refusal = { name: 'LogInUseError', claimed: 's', owner: `test process ${owner.pid}` }

    await expect(log.claim('s')).rejects.toMatchObject(refusal)
    owner.kill('SIGSTOP')
    await expect(log.claim('s')).rejects.toMatchObject(refusal)
    await expect(log.claim('another')).resolves.toMatchObject({ token: 1 })
  })

  it('is free as soon as its owner was killed', async () => {
    const file = scratchFile()
    const owner = startLogProcess(file)
    const fence = (await owner.call('claim', 's')) as Fence
    owner.kill('SIGKILL')
    await owner.exited

    await expect(openLog(file).claim('s')).resolves.toEqual({ name: 's', token: fence.token + 1 })
  })

  it('is given to a claim that waits, once its owner was killed', async () => {
    const file = scratchFile()
    const owner = startLogProcess(file)
    await owner.call('claim', 's')
    const waiting = openLog(file).claim('s', { wait: new AbortController().signal })
    owner.kill('SIGKILL')

    await expect(waiting).resolves.toEqual({ name: 's', token: 2 })
  })

  it('of a dead process is free also for a log whose first claim took the lock of that process and failed', async () => {
    const file = scratchFile()
    const owner = startLogProcess(file)
    await owner.call('claim', 's')
    owner.kill('SIGKILL')
    await owner.exited
    let failures = 1
    class Connection extends DatabaseSync {
      override exec(sql: string): void {
        if (
          sql === 'COMMIT' &&
          this.prepare('SELECT token FROM rivulet_claim WHERE token > 1').get() &&
          failures-- > 0
        )
          throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
        super.exec(sql)
      }
    }
    const log = openStore(file, { connect: (path) => new Connection(path, { timeout: 0 }) })

    await expect(log.claim('s')).rejects.toMatchObject({ name: 'LogFileError', retryable: true })
    await expect(log.claim('s')).resolves.toEqual({ name: 's', token: 2 })
  })

  it('is not free for one who gets the lock of a dead process: each lock belongs to one log', async () => {
    const file = scratchFile()
    const first = startLogProcess(file)
    const second = startLogProcess(file)
    await first.call('claim', 'first')
    await second.call('claim', 'second')
    first.kill('SIGKILL')
    await first.exited
    // Takes the slot of the first.
    const third = startLogProcess(file)
    await third.call('claim', 'third')
    const log = openLog(file)

    await expect(log.claim('first')).resolves.toEqual({ name: 'first', token: 2 })
    await expect(log.claim('second')).rejects.toThrow(LogInUseError)
    await expect(log.claim('third')).rejects.toThrow(LogInUseError)
  })

  it('whose lock was removed can be taken over, and its suspended owner is fenced when it continues', async () => {
    const file = scratchFile()
    const owner = startLogProcess(file)
    const fence = await owner.call('claim', 's')
    owner.kill('SIGSTOP')
    unlinkSync(`${file}-lock-0`)
    const log = openLog(file)
    const position = await log.positionAt('start')
    await appendTo(log, detections(1, 1))
    owner.kill('SIGCONT')

    const append = { fence, expect: '1', position: '2', entries: detections(2, 2) }
    await expect(owner.call('append', [append])).rejects.toMatchObject({ name: 'FencedError' })
    const commit = { expect: null, cursor: position, acknowledged: [] }
    await expect(owner.call('commit', fence, commit)).rejects.toMatchObject({ name: 'FencedError' })
    await expect(readAll(log)).resolves.toHaveLength(1)
  })
})

describe('a process of the log', () => {
  it('that is killed in its commits counts and appends each entry once, in whatever process it goes on', async () => {
    const file = scratchFile()
    const log = openLog(file)
    await appendTo(log, detections(1, 120))
    const start = await log.processes.start()
    const changed = (after = start) =>
      log.processes.wait('process:counts', after, new AbortController().signal)
    const state = async () => (await log.processes.states('process:counts', ['/v1/monitors/monitor_1']))[0]
    for (let kills = 0; kills < 3; kills++) {
      const killed = startLogProcess(file)
      // At its claim, its first commits and later ones.
      if (kills === 0) await killed.call('signalAtCommit', 'SIGKILL')
      void killed.call('count')
      if (kills > 0) {
        await changed()
        await appendTo(log, detections(120 * kills + 1, 120 * (kills + 1)), String(kills + 1))
        void killed.call('signalAtCommit', 'SIGKILL')
        await appendTo(log, detections(120 * kills + 120, 120 * kills + 121), 'more')
      }
      await killed.exited
    }
    void startLogProcess(file).call('count')
    const detected = (await readAll(log)).filter(({ type }) => type === 'monitor.event_stream')
    const found = detected.length
    while ((await state()) !== String(found)) await changed(await log.processes.end('process:counts'))

    expect(await state()).toBe(String(found))
    const entries = await readAll(log)
    const counts = entries.flatMap(({ type, data }) => (type === 'unknown' ? [data] : []))
    expect(counts).toEqual(Array.from({ length: found }, (_, n) => n + 1))
  })
})

describe('processes that append the same events of an application', () => {
  it('append each once and in order, however often they are killed in the middle', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const { signal } = new AbortController()
    let position = await log.positionAt('start')
    for (let kills = 0; kills < 4; kills++) {
      const writers = [startLogProcess(file), startLogProcess(file)]
      for (const writer of writers) void writer.call('appendInvoices', 1, 100_000)
      // Both begin with what is there; each time, one of them has to come further.
      for (let more = 0; more < 20; more++) {
        await log.wait(position, signal)
        position = await log.positionAt('end')
      }
      for (const writer of writers) void writer.call('signalAtCommit', 'SIGKILL')
      await Promise.all(writers.map(({ exited }) => exited))
    }
    const { length: before } = await readAll(log)
    const last = startLogProcess(file)

    expect(before).toBeGreaterThanOrEqual(80)
    expect(await last.call('appendInvoices', 1, before + 5)).toBe(5)
    const entries = await readAll(log)
    expect(entries.map(({ id }) => id)).toEqual(Array.from({ length: before + 5 }, (_, n) => `${n + 1}`))
  })
})

describe('a process that stops between BEGIN and COMMIT', () => {
  /** It has appended three entries, and is stopped in the append of three more. */
  async function stoppedBy(signal: NodeJS.Signals) {
    const file = scratchFile()
    const writer = startLogProcess(file)
    const fence = await writer.call('appendDetections', 1, 3)
    await writer.call('signalAtCommit', signal)
    void writer.call('append', [{ fence, expect: '3', position: '6', entries: detections(4, 6) }])
    await (signal === 'SIGKILL' ? writer.exited : suspended(writer.pid))
    return { log: openLog(file), writer }
  }

  /** What is there, and whether the next writer goes on. */
  async function stateOf(log: LogStore) {
    const entries = await readAll(log)
    const [position] = await log.streamPositions(['s'])
    const appended = await appendTo(log, detections(4, 4), '4')
    return { count: entries.length, position, added: appended.entries }
  }

  it('by SIGKILL has written nothing', async () => {
    const { log } = await stoppedBy('SIGKILL')
    await expect(stateOf(log)).resolves.toEqual({ count: 3, position: '3', added: 1 })
  })

  it('by SIGSTOP does not stop readers, and is named at once by a claim that needs its lock', async () => {
    const { log, writer } = await stoppedBy('SIGSTOP')
    await expect(readAll(log)).resolves.toHaveLength(3)
    await expect(log.claim('s')).rejects.toMatchObject({ owner: `test process ${writer.pid}` })
    writer.kill('SIGKILL')
    await writer.exited
    await expect(stateOf(log)).resolves.toEqual({ count: 3, position: '3', added: 1 })
  })

  it('by SIGSTOP keeps a log from closing for some seconds only, and what was not saved comes again', async () => {
    const file = scratchFile()
    const writer = startLogProcess(file)
    const fence = await writer.call('appendDetections', 1, 1)
    const log = await openEventLog(openLog(file))
    const [isHandling, isSuspended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const job = log.consume('c', () => {
      isHandling.resolve()
      return isSuspended.promise
    })
    const failure = job.done.catch((error: unknown) => error)
    await isHandling.promise
    await writer.call('signalAtCommit', 'SIGSTOP')
    void writer.call('append', [{ fence, expect: '1', position: '6', entries: detections(4, 6) }])
    await suspended(writer.pid)
    isSuspended.resolve()

    const began = performance.now()
    await expect(log.close()).rejects.toMatchObject({ name: 'LogFileError', retryable: true })
    expect(performance.now() - began).toBeLessThan(10_000)
    await failure
    writer.kill('SIGKILL')
    await writer.exited
    const again = await openEventLog(openLog(file))
    const redelivered = Promise.withResolvers<string>()
    again.consume('c', ({ id }) => redelivered.resolve(id))
    await expect(redelivered.promise).resolves.toBe('mevt_1')
    await again.close()
  })

  it('and is continued goes on, if it was not fenced', async () => {
    const file = scratchFile()
    const writer = startLogProcess(file)
    await writer.call('signalAtCommit', 'SIGSTOP')
    const call = writer.call('appendDetections', 1, 3)
    await suspended(writer.pid)
    // The claim was the first transaction.
    writer.kill('SIGCONT')
    await suspended(writer.pid)
    writer.kill('SIGCONT')

    await expect(call).resolves.toEqual({ name: 's', token: 1 })
    await expect(writer.call('readAll')).resolves.toHaveLength(3)
  })
})

describe('several processes over one file', () => {
  it('append to their streams at once: nothing is lost, doubled or out of order', async () => {
    const file = scratchFile()
    const writers = [startLogProcess(file), startLogProcess(file)]
    const fences = await Promise.all(writers.map((writer, index) => writer.call('claim', `stream ${index}`)))
    const rounds = 30
    await Promise.all(
      writers.map(async (writer, index) => {
        for (let round = 0; round < rounds; round++) {
          const entries = detections(index * 1_000 + round * 10, index * 1_000 + round * 10 + 9)
          const expected = round === 0 ? null : String(round)
          await writer.call('append', [
            { fence: fences[index], expect: expected, position: String(round + 1), entries },
          ])
        }
      }),
    )
    const log = openLog(file)
    const numbers = (await readAll(log)).map(({ id }) => Number(id.slice('mevt_'.length)))

    const ofWriter = (index: number) => numbers.filter((number) => Math.floor(number / 1_000) === index)
    expect(numbers).toHaveLength(rounds * 20)
    expect(ofWriter(0)).toEqual(Array.from({ length: rounds * 10 }, (_, number) => number))
    expect(ofWriter(1)).toEqual(Array.from({ length: rounds * 10 }, (_, number) => 1_000 + number))
    const { entries } = await log.read(await log.positionAt('start'), { limit: 1_000 })
    expect(new Set(entries.map(({ position }) => position))).toHaveProperty('size', rounds * 20)
  })

  it('wait for the same stream, which each of them gets in turn', async () => {
    const file = scratchFile()
    const writers = [startLogProcess(file), startLogProcess(file), startLogProcess(file)]
    const rounds = 5
    const numbers = await Promise.all(
      writers.map(async (writer) => {
        const written: number[] = []
        for (let round = 0; round < rounds; round++) written.push(Number(await writer.call('appendNext')))
        return written
      }),
    )

    const all = Array.from({ length: rounds * writers.length }, (_, index) => index + 1)
    expect(numbers.flat().toSorted((a, b) => a - b)).toEqual(all)
    expect((await readAll(openLog(file))).map(({ id }) => id)).toEqual(all.map((number) => `mevt_${number}`))
  })

  it('read what the others append, from the same positions', async () => {
    const file = scratchFile()
    const other = startLogProcess(file)
    await other.call('appendDetections', 1, 3)
    const log = openLog(file)

    expect(await readAll(log)).toEqual(await other.call('readAll'))
    await expect(other.call('positionAt', 'end')).resolves.toBe(await log.positionAt('end'))
  })

  it('a waiting process notices an entry of another one', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const reader = startLogProcess(file)
    const took: number[] = []
    for (let round = 1; round <= 40; round++) {
      const noticed = reader.call('wait', await log.positionAt('end'))
      // Its answer shows that the wait has begun.
      await reader.call('positionAt', 'end')
      await appendTo(log, detections(round, round), String(round))
      const appended = performance.timeOrigin + performance.now()
      took.push(Number(await noticed) - appended)
    }
    took.sort((a, b) => a - b)
    const [p50, p95] = [0.5, 0.95].map((share) => took[Math.floor(share * took.length)]?.toFixed(1))
    process.stdout.write(`noticed in another process after: p50 ${p50} ms, p95 ${p95} ms\n`)
    expect(took).toHaveLength(40)
  })
})

describe('a power cut', () => {
  it('leaves whole appends, from the first on, wherever it cuts the write-ahead log', async () => {
    const file = scratchFile()
    const writer = startLogProcess(file)
    const appends = 12
    for (let append = 0; append < appends; append++) {
      await writer.call('appendDetections', append * 5 + 1, append * 5 + 5)
    }
    const acknowledged = (await writer.call('readAll')) as { readonly position: string }[]
    expect(acknowledged).toHaveLength(appends * 5)
    // So that nothing is checkpointed.
    writer.kill('SIGKILL')
    await writer.exited
    const wal = readFileSync(`${file}-wal`)
    const pageSize = wal.readUInt32BE(8)
    const frames = (wal.length - 32) / (24 + pageSize)
    expect(frames).toBeGreaterThan(appends)
    const folder = scratchFolder()
    const counts = new Set<number>()
    for (let frame = 0; frame <= frames; frame++) {
      // At the end of a frame, and within it.
      for (const length of [32 + frame * (24 + pageSize), 32 + frame * (24 + pageSize) - 1_000]) {
        if (length < 0) continue
        const copy = join(folder, `${length}.db`)
        copyFileSync(file, copy)
        writeFileSync(`${copy}-wal`, wal.subarray(0, length))
        const log = openStore(copy, {})
        const entries = await readAll(log)
        const [position] = await log.streamPositions(['s'])
        const added = await appendTo(log, detections(1_000, 1_000), 'after')
        await log.close()

        expect(entries.length % 5).toBe(0)
        expect(Number(position)).toBe(entries.length)
        expect(entries.map(({ id }) => id)).toEqual(
          detections(1, entries.length).map(({ event }) => event.id),
        )
        expect(added).toMatchObject({ entries: 1, end: expect.stringMatching(`\\.${entries.length + 1}\\.`) })
        counts.add(entries.length)
      }
    }
    // Each append is the last that is left somewhere.
    expect(counts.size).toBe(appends + 1)
  }, 60_000)
})

it('a process that is killed again and again loses nothing that it appended, and doubles nothing', async () => {
  const file = scratchFile()
  let acknowledged = 0
  for (let life = 1; life <= 8; life++) {
    const writer = startLogProcess(file)
    for (let append = 0; append < 3; append++) acknowledged = Number(await writer.call('appendNext'))
    void writer.call('appendNext').then((number) => (acknowledged = Number(number)))
    // Another time in each life.
    for (let turn = 0; turn < life * 20; turn++) await setImmediate()
    writer.kill('SIGKILL')
    await writer.exited
  }
  const log = openLog(file)
  const entries = await readAll(log)

  expect(acknowledged).toBeGreaterThanOrEqual(24)
  expect(entries.length).toBeGreaterThanOrEqual(acknowledged)
  expect(entries.map(({ id }) => id)).toEqual(entries.map((_, index) => `mevt_${index + 1}`))
  await expect(log.streamPositions(['s'])).resolves.toEqual([String(entries.length)])
})

it('a fence is checked in the transaction: a claim that came in between makes the write fail', async () => {
  const file = scratchFile()
  const log = openLog(file)
  const earlier = await log.claim('s')
  await log.claim('s')

  const append = { fence: earlier, expect: null, entries: detections(1, 1) }
  await expect(log.append([append])).rejects.toThrow(FencedError)
  await expect(readAll(log)).resolves.toEqual([])
})
