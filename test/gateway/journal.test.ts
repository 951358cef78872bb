import { openLog } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Journal } from '../../src/gateway/journal.ts'
import { revokedEvent, sessionEvent } from '../../src/protocol/gateway-event.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const event = (key: string) => revokedEvent({ sub: key, grant: null }, key, 0)

describe('the journal of a gateway', () => {
  it('does not keep a call waiting for the calls after it', async () => {
    const log = await openLog(simulatedStore())
    const journal = new Journal(log)
    onTestFinished(() => log.close())
    const done: number[] = []
    // Each call makes the next one before it is done, so that there always is one.
    const record = async (number: number): Promise<void> => {
      const recorded = journal.record(event(`${number}`))
      await Promise.resolve()
      const next = number < 500 ? record(number + 1) : undefined
      await recorded
      done.push(number)
      await next
    }
    await record(0)

    expect(done).toEqual(done.toSorted((a, b) => a - b))
    expect(done).toHaveLength(501)
    await journal.close()
  })

  it('appends what was recorded before it is closed', async () => {
    const log = await openLog(simulatedStore())
    const journal = new Journal(log)
    onTestFinished(() => log.close())
    const recorded = journal.record(event('1'))
    await journal.close()

    await expect(recorded).resolves.toBeUndefined()
    await expect(journal.record(event('2'))).rejects.toThrow(/closed/)
  })

  it('reports what the log refuses to each call, and goes on once the log accepts again', async () => {
    let isFull = true
    const faults = () => {
      if (isFull) throw new RangeError('no space')
    }
    const log = await openLog(simulatedStore({ faults }))
    const journal = new Journal(log)
    onTestFinished(() => log.close().catch(() => {}))

    const failed = await Promise.allSettled([journal.record(event('1')), journal.record(event('2'))])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    isFull = false
    await journal.record(event('3'))
    const { entries } = await log.read(await log.positionAt('start'))
    expect(entries.map(({ id }) => id)).toEqual(['revoked:3'])
    await journal.close()
  })

  it('of several gateways takes as many streams as there are at a time', async () => {
    const store = simulatedStore()
    const log = await openLog(store)
    onTestFinished(() => log.close())
    for (let round = 0; round < 3; round++) {
      const journals = [new Journal(log), new Journal(log)]
      await Promise.all(journals.map((journal, n) => journal.record(event(`${round} ${n}`))))
      await Promise.all(journals.map((journal) => journal.close()))
    }

    const { streams } = await log.stats()
    expect(streams.length).toBeLessThanOrEqual(2)
    expect((await log.read(await log.positionAt('start'))).entries).toHaveLength(6)
  })

  it('records an identity once, among calls at the same time', async () => {
    const log = await openLog(simulatedStore())
    onTestFinished(() => log.close())
    const journals = Array.from({ length: 4 }, () => new Journal(log))
    const first = await Promise.all(
      journals.map((journal, n) =>
        journal.recordOnce(
          sessionEvent({ sub: 'ada', grant: 'g', exchange: `${n}` }, 0),
          (entry) => entry.type === 'gateway.session' && entry.data.exchange === `${n}`,
        ),
      ),
    )

    expect(first.filter(Boolean)).toHaveLength(1)
    await Promise.all(journals.map((journal) => journal.close()))
  })
})
