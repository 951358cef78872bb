import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openCorpus } from '../../../src/service/corpus/open-corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { Faults } from '../../../src/service/faults/faults.ts'
import { DeliveringOutbox } from '../../../src/service/webhooks/delivery.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { FakeCorpus } from './fake-corpus.ts'
import { BATTERY, startMonitors, startMonitorsOver, summaries } from './service.ts'

const HOUR = 3_600_000

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'monitors-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

describe('a restart', () => {
  it('keeps monitors, events and cursors, and runs overdue monitors', async () => {
    const file = join(await temporaryFolder(), 'service.db')
    const corpus = new FakeCorpus()
    const first = await startMonitorsOver(corpus, { file })
    const id = await first.create()
    corpus.put('https://example.org/a', ['solid battery a1', 'solid battery a2'])
    await first.advance(HOUR)
    const { next_cursor } = await first.page(id, 'limit=1')
    await first.stop()

    corpus.put('https://example.org/b', ['solid battery b'])
    const clock = new ManualClock(first.clock.now() + 10.5 * HOUR)
    const second = await startMonitorsOver(corpus, { file, clock })
    await second.monitors.settled()

    expect(summaries(await second.events(id))).toEqual([
      'solid battery b',
      'solid battery a2',
      'solid battery a1',
      'completion',
    ])
    expect(summaries((await second.page(id, `cursor=${next_cursor}`)).events)).toEqual(['solid battery a1'])
    expect(clock.next).toBe(clock.now() + HOUR / 2)
  })

  it('executes a trigger of the previous process', async () => {
    const file = join(await temporaryFolder(), 'service.db')
    const corpus = new FakeCorpus()
    const first = await startMonitorsOver(corpus, { file })
    const id = await first.create()
    const release = corpus.hold()
    await first.post(`/${id}/trigger`)
    await first.post(`/${id}/trigger`)
    const stopped = first.stop()
    release()
    await stopped

    const second = await startMonitorsOver(corpus, { file, clock: new ManualClock(first.clock.now()) })
    await second.monitors.settled()

    expect(await second.events(id)).toHaveLength(3)
  })

  it('does not run cancelled monitors', async () => {
    const file = join(await temporaryFolder(), 'service.db')
    const first = await startMonitors({ file })
    const id = await first.create()
    await first.post(`/${id}/cancel`)
    await first.stop()

    const second = await startMonitors({ file, clock: new ManualClock(first.clock.now() + 5 * HOUR) })
    await second.monitors.settled()

    expect(await second.events(id)).toHaveLength(1)
    expect(second.clock.next).toBeUndefined()
  })
})

describe('monitors, documents and webhooks together', () => {
  it('report an added document verbatim, and send its event_group_id to the receiver', async () => {
    const folder = await temporaryFolder()
    const docs = join(folder, 'docs')
    await mkdir(docs)
    await writeFile(join(docs, 'old.md'), '# Old\n\nThe solid battery of last year.\n')
    const database = openDatabase(join(folder, 'service.db'))
    onTestFinished(() => database.close())
    const corpus = await openCorpus(database, { folders: [docs], watch: false })
    onTestFinished(() => corpus.close())
    const clock = new ManualClock()
    const outbox = new DeliveringOutbox({ database, clock, faults: new Faults(), secrets: () => ['secret'] })
    outbox.start()
    onTestFinished(() => outbox.close())
    const receiver = await startReceiver()
    const service = await startMonitorsOver(corpus, { clock, outbox })
    const webhook = { url: receiver.url, event_types: ['monitor.event.detected'] }
    const id = await service.create({ ...BATTERY, webhook })

    await writeFile(join(docs, 'new.md'), '# New\n\nA solid battery was shown today.\n')
    await service.advance(HOUR)
    await outbox.settled()

    const [hook] = receiver.received
    const { type, data } = JSON.parse(hook?.body.toString() ?? 'null')
    expect(type).toBe('monitor.event.detected')
    expect(data.monitor_id).toBe(id)
    const [event, ...others] = await service.events(id, `event_group_id=${data.event.event_group_id}`)
    if (event?.event_type !== 'event_stream') throw new Error('no event')
    expect(others).toEqual([])
    expect(event.output.content).toContain('A solid battery was shown today.')
    const [citation] = event.output.basis[0]?.citations ?? []
    expect(corpus.document(citation?.url ?? '')?.text).toContain(citation?.excerpts?.[0])
  })
})
