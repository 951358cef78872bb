import { describe, expect, it } from 'vitest'
import { corpusOf, folderOf } from './corpus/folder.ts'
import { FindAllCaller } from './find-all/caller.ts'
import { modelServer } from './model/model-server.ts'
import { startMonitorsOver } from './monitors/service.ts'
import { running } from './running.ts'

const described = {
  version: '3.1.4',
  private: true,
  description: 'A "minimal" watcher for kelp: counts fronds',
  keywords: ['kelp', 'watch'],
  scripts: { license: 'GPL-3.0', test: 'kelp' },
  license: 'MIT',
  dependencies: { author: '^1.0.0' },
  author: { name: 'Ann Alga', email: 'ann@example.org' },
  engines: { node: '>=20' },
}

/** Manifests as people and programs write them. */
const MANIFESTS: Readonly<Record<string, string>> = {
  'spaces/package.json': JSON.stringify({ name: 'spaces', ...described }, null, 2),
  'minified/package.json': JSON.stringify({ ...described, version: '1.0.0', name: 'minified' }),
  'tabs/package.json': JSON.stringify({ name: 'tabs', ...described, license: 'ISC' }, null, '\t'),
  'windows/package.json': JSON.stringify({ name: 'windows', ...described }, null, 4).replaceAll('\n', '\r\n'),
  'escaped/package.json': String.raw`{ "name": "escaped", "bin": {}, "description": "Watches kelp \u2014 and \"fronds\"",

  "license": "Apache-2.0", "author":"Ann Alga", "license" : "MIT", "version" : "2.0.0", "engines": {
    "node": ">=20" } }`,
}
const NAMES = Object.keys(MANIFESTS).map((path) => path.replace('/package.json', ''))
const SITE = 'https://docs.example/'

/** What an answer quotes: the excerpts of each object in it that has a URL. */
function quotedIn(answer: unknown): { readonly url: string; readonly excerpt: string }[] {
  if (typeof answer !== 'object' || answer === null) return []
  const { url, excerpts }: { readonly url?: unknown; readonly excerpts?: unknown } = answer
  const own = Array.isArray(excerpts)
    ? excerpts.map((excerpt) => ({ url: String(url), excerpt: String(excerpt) }))
    : []
  return [...own, ...Object.values(answer).flatMap(quotedIn)]
}

/** The quotations of answers that their files do not contain. Throws if a manifest is not quoted at all. */
function misquotations(answers: readonly unknown[], urlOf = (path: string) => SITE + path) {
  const quoted = quotedIn(answers)
  for (const path of Object.keys(MANIFESTS)) {
    if (!quoted.some(({ url }) => url === urlOf(path))) throw new Error(`${path} is not quoted`)
  }
  const files = new Map(Object.entries(MANIFESTS).map(([path, file]) => [urlOf(path), file]))
  return quoted.filter(({ url, excerpt }) => files.get(url)?.includes(excerpt) !== true)
}

async function service(model?: string) {
  const docs = [{ folder: await folderOf(MANIFESTS), site: SITE }]
  const caller = await running({
    docs,
    processor: undefined,
    ...(model !== undefined && { model: { url: model, name: 'tiny' } }),
  })
  const answerOf = async (run: unknown) => {
    const { body } = await caller.post<{ run_id: string }>('/v1/tasks/runs', run)
    return (await caller.get<unknown>(`/v1/tasks/runs/${body.run_id}/result`)).body
  }
  const post = async (path: string, body: unknown) => (await caller.post<unknown>(path, body)).body
  return { caller, answerOf, post }
}

const FACTS = {
  type: 'json',
  json_schema: {
    type: 'object',
    properties: Object.fromEntries(
      ['licence', 'author', 'version', 'runtime', 'keywords', 'description'].map((name) => [
        name,
        { type: 'string', description: `The ${name} of the package` },
      ]),
    ),
  },
}

describe('what is quoted from a manifest stands in its file word for word', () => {
  it('in answers, results of searches and extracts', async () => {
    const { answerOf, post } = await service()
    const ask = (name: string) =>
      Promise.all([
        answerOf({ input: `What is the licence of ${name}?`, processor: 'core' }),
        answerOf({ input: name, processor: 'core', task_spec: { output_schema: FACTS } }),
      ])

    expect(misquotations(await Promise.all(NAMES.map(ask)))).toEqual([])
    expect(
      misquotations([
        await post('/v1/search', { search_queries: ['kelp fronds version license author engines'] }),
      ]),
    ).toEqual([])
    const urls = Object.keys(MANIFESTS).map((path) => SITE + path)
    expect(misquotations([await post('/v1/extract', { urls })])).toEqual([])
    const search_queries = ['license', 'name', 'author']
    expect(misquotations([await post('/v1/extract', { urls, search_queries })])).toEqual([])
  })

  it('in the candidates of FindAll', async () => {
    const findAll = new FindAllCaller((await service()).caller)
    const id = await findAll.create({
      entity_type: 'packages',
      objective: 'Packages that watch kelp',
      match_conditions: [
        { name: 'watcher', description: 'It is a watcher for kelp' },
        { name: 'author', description: 'Its author is Ann Alga' },
        { name: 'licence', description: 'Its license is MIT' },
      ],
    })
    await findAll.events(id)

    expect(misquotations([await findAll.result(id)])).toEqual([])
  })

  it('in the quotes of a model', async () => {
    const quote = '"license": "MIT"'
    const { url } = await modelServer({ answer: 'MIT', quotes: [{ passage: 1, quote }] })
    const { answerOf } = await service(url)
    const answer = await answerOf({ input: 'What is the licence of spaces?', processor: 'core' })

    expect(quotedIn(answer)).toEqual([{ url: `${SITE}spaces/package.json`, excerpt: quote }])
  })

  it('in the events of a monitor', async () => {
    const corpus = await corpusOf(MANIFESTS)
    const { create, events } = await startMonitorsOver(corpus)
    const settings = { query: 'kelp', include_backfill: true }
    const id = await create({ type: 'event_stream', frequency: '1d', settings })
    const urls = corpus.passages({ queries: ['kelp'], limit: 99 }).map((passage) => passage.url)
    const urlOf = (path: string) => urls.find((url) => url.endsWith(`/${path}`)) ?? path

    expect(misquotations([await events(id)], urlOf)).toEqual([])
  })
})
