import { setImmediate as turn } from 'node:timers/promises'
import { findAllSource } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { MemoryStore } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { createGateway, findAllsView, findAllView } from 'rivulet/gateway'
import { backtest, defineRules, runRules } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { processed } from '../gateway/fixture.ts'
import { readAll } from '../log/conformance/fixture.ts'
import { research } from './research.ts'

const files = {
  'acme/README.md': '# acme\n\nAcme is a library. It is written in Rust.\n',
  'globex/README.md': '# globex\n\nGlobex is a library. It is written in TypeScript.\n',
}
const VIEWS = { findAlls: findAllsView(), findAll: findAllView() }
const SECRET = 'a secret of thirty-two bytes or more'

/** Two FindAll runs, one for libraries in each language, recorded into a log. */
async function recorded(): Promise<{ rust: string; typescript: string; store: MemoryStore }> {
  const { client } = await research({ files })
  const create = async (language: string) => {
    const { findall_id } = await client.findAll.create({
      objective: `Find all libraries written in ${language}`,
      entity_type: 'libraries',
      match_conditions: [{ name: 'language', description: `The library is written in ${language}` }],
      generator: 'core',
      match_limit: 20,
    })
    return findall_id
  }
  const [rust, typescript] = [await create('Rust'), await create('TypeScript')]
  const store = memoryStore()
  await using log = await openLog(store.connect())
  await log.record({ client, findAlls: [rust, typescript] }).done
  return { rust, typescript, store }
}

/** All rows of both views, as a text, for a subject that may see these sources. */
async function rows(store: MemoryStore, ids: readonly string[], sources: readonly string[]): Promise<string> {
  const own = store.connect()
  await using log = await openLog(own)
  await using gateway = createGateway({ log, views: VIEWS, tokens: { secret: SECRET } })
  for (const name of Object.keys(VIEWS)) await processed(own, name)
  const mayBeSeen = ids.filter((id) => sources.includes('*') || sources.includes(findAllSource(id)))
  const wanted = [
    { view: 'findAlls' } as const,
    ...mayBeSeen.map((findAll) => ({ view: 'findAll', params: { findAll } }) as const),
  ]
  return JSON.stringify(await gateway.snapshot({ sub: 'ada', views: Object.keys(VIEWS), sources }, wanted))
}

const caughtUp = async (store: LogStore) => {
  while ((await store.reader('process:rules'))?.cursor !== (await store.positionAt('end'))) await turn()
}
const shown = ({ type, source, time, data }: ResearchEvent) => ({ type, source, time, data })

describe('FindAll runs in a log', () => {
  it('are rows of a gateway, each for those who may see its source', async () => {
    const { rust, typescript, store } = await recorded()
    const all = await rows(store, [rust, typescript], ['*'])
    expect(all).toContain('written in Rust')
    expect(all).toContain('written in TypeScript')

    const granted = await rows(store, [rust, typescript], [findAllSource(rust)])
    expect(granted).toContain('written in Rust')
    expect(granted).not.toContain(typescript)
    expect(granted).not.toContain('written in TypeScript')
  })

  it('are forgotten by their source, and no row comes back', async () => {
    const { rust, typescript, store } = await recorded()
    await using log = await openLog(store.connect())
    expect((await log.forget({ source: findAllSource(rust) })).entries).toBeGreaterThan(2)

    const left = await rows(store, [typescript], ['*'])
    expect(left).not.toContain(rust)
    expect(left).toContain(typescript)
    expect(JSON.stringify(await readAll(store))).not.toContain(rust)
  })

  it('alert in a backtest as they did live', async () => {
    const { store } = await recorded()
    // The service's clock stands still, so that all events are older than the recording.
    const rules = defineRules([
      { alert: 'Match', on: ['findall.candidate.matched'], per: 'event', backfill: 'place' },
      {
        alert: 'Over',
        on: ['findall.status'],
        when: '!data.data.status.is_active',
        per: 'event',
        backfill: 'place',
      },
    ])
    const own = store.connect()
    await using log = await openLog(own)
    const running = runRules(log, rules, { startAt: 'start' })
    await caughtUp(own)
    await running.stop()
    const entries = await readAll(store)
    const live = entries.filter(({ type }) => type === 'alert.firing').map(shown)
    const again: ReturnType<typeof shown>[] = []
    await backtest(rules, entries, {
      onAlert: (event) => {
        if (event.type === 'alert.firing') again.push(shown(event))
      },
    })

    expect(again).toEqual(live)
    expect(live).toHaveLength(4)
  })
})
