import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { FindAllResult, FindAllRun } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { programFiles } from '../../support/programs.ts'
import { EventReader, HeldProcessor, temporaryFolder } from '../running.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { ENRICHMENT, findAllService, LIBRARIES, manyPackages, packageFolder } from './caller.ts'
import type { FindAllServerEvent } from './caller.ts'

const fileOf = await programFiles()

const HEADERS = {
  'x-api-key': 'key',
  'service-beta': 'findall-2025-09-15',
  'content-type': 'application/json',
}

/** A service in a process of its own, killed after the test. */
async function startProcess(docs: string, data: string) {
  const child = fork(fileOf('test/service/find-all/service-process.ts'), [docs, data, 'key'], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const [url] = await once(child, 'message')
  const request = async (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return await fetch(`${url}/v1beta/findall${path}`, { headers: HEADERS, ...init })
  }
  return {
    request,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

describe('a FindAll run', () => {
  it('loses and doubles nothing when its service is killed several times', { timeout: 120_000 }, async () => {
    const docs = await packageFolder(manyPackages(24))
    const file = join(await temporaryFolder(), 'service.db')
    const { url, received } = await startReceiver()
    const types = ['generated', 'matched', 'unmatched', 'enriched'].map(
      (change) => `findall.candidate.${change}`,
    )
    let service = await startProcess(docs, file)
    const webhook = { url, event_types: [...types, 'findall.run.completed'] }
    const created = await service.request('/runs', { ...LIBRARIES, match_limit: 20, webhook })
    const { findall_id: id }: FindAllRun = await created.json()
    await service.request(`/runs/${id}/enrich`, ENRICHMENT)
    const events: FindAllServerEvent[] = []

    /** Reads this many events after the last one, fewer at the end of the stream. */
    async function read(count: number): Promise<boolean> {
      const response = await service.request(`/runs/${id}/events?last_event_id=${events.at(-1)?.id ?? ''}`)
      const reader = new EventReader(response)
      for (let index = 0; index < count; index++) {
        const event = await reader.next()
        if (event === undefined) return true
        events.push(event as unknown as FindAllServerEvent)
      }
      await reader.close()
      return false
    }

    for (const count of [0, 5, 13, 2]) {
      await read(count)
      await service.kill()
      service = await startProcess(docs, file)
    }
    expect(await read(Infinity)).toBe(true)
    const answer = await service.request(`/runs/${id}/result`)
    const { run, candidates, last_event_id }: FindAllResult = await answer.json()

    expect(events.map((event) => event.id)).toEqual(events.map((_, index) => `${id}:${index + 1}`))
    expect(last_event_id).toBe(events.at(-1)?.id)
    const changes = events
      .filter(({ event }) => event.startsWith('findall.candidate.'))
      .map(({ event, data: { data } }) => `${event} ${data.candidate_id}`)
    expect(new Set(changes).size).toBe(changes.length)
    expect(run.status).toMatchObject({ status: 'completed', termination_reason: 'candidates_exhausted' })
    expect(candidates).toHaveLength(run.status.metrics.generated_candidates_count)
    const matched = candidates.filter(({ match_status }) => match_status === 'matched')
    expect(matched).toHaveLength(run.status.metrics.matched_candidates_count)
    expect(matched.every(({ output }) => output?.['language'] !== undefined)).toBe(true)
    expect(changes).toHaveLength(candidates.length * 2 + matched.length)
    // Webhooks may be sent again, with the same id.
    const sent = new Map(received.map((hook) => [hook.id, JSON.parse(hook.body.toString())]))
    const announced = [...sent.values()].map(
      ({ type, data: { candidate_id = id } }) => `${type} ${candidate_id}`,
    )
    // The run completes twice if its enrichment arrives after the first time.
    const ofCandidates = announced.filter((text) => !text.includes('.run.'))
    expect(new Set(ofCandidates).size).toBe(ofCandidates.length)
    expect(announced.length - ofCandidates.length).toBeOneOf([1, 2])
    expect(changes).toEqual(expect.arrayContaining(ofCandidates))
  })

  it('goes on with its enrichment, and is cancelled, when the service starts again', async () => {
    const [docs, data] = [await packageFolder(), join(await temporaryFolder(), 'service.db')]
    const options = { docs: [{ folder: docs, site: 'https://docs.example' }], data }
    const first = new HeldProcessor()
    const before = await findAllService({ ...options, processor: first })
    const [going, cancelled] = [await before.create(), await before.create()]
    await before.post(`/runs/${going}/enrich`, ENRICHMENT)
    await before.post(`/runs/${cancelled}/enrich`, ENRICHMENT)
    const [one] = [await first.next(), await first.next()]
    const seen = await before.result(going)
    await before.caller.service.close()

    const second = new HeldProcessor()
    const after = await findAllService({ ...options, processor: second })
    const [again] = [await second.next(), await second.next()]
    await after.post(`/runs/${cancelled}/cancel`)
    const events = await after.events(cancelled)
    const now = await after.result(going)

    expect(one.signal.aborted).toBe(true)
    expect(again.task.run_id.startsWith('candidate_')).toBe(true)
    expect(now).toEqual(seen)
    expect(events.at(-1)?.data.data.status).toMatchObject({ status: 'cancelled' })
  })
})
