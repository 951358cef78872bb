import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ENTRY_POINTS = [
  'rivulet',
  'rivulet/operators',
  'rivulet/streams',
  'rivulet/live',
  'rivulet/webhooks',
  'rivulet/log/sqlite',
  'rivulet/log/store',
  'rivulet/log/nats',
  'rivulet/otel',
  'rivulet/react',
  'rivulet/rules',
  'rivulet/gateway',
  'rivulet/dashboard',
  'rivulet/service',
]
const PROJECT = resolve(import.meta.dirname, '../..')

interface Declaration {
  readonly name: string
  readonly comment?: object
  readonly children?: readonly Declaration[]
  /** The forms of a call. */
  readonly signatures?: readonly Declaration[]
  readonly type?: { readonly type: string; readonly name?: string }
}

let folder: string
let modules: readonly Declaration[]
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rivulet-reference-'))
  const typedoc = join(PROJECT, 'build/reference/node_modules/typedoc/bin/typedoc')
  const options = join(PROJECT, 'build/reference/typedoc.json')
  const json = join(folder, 'reference.json')
  // Its warnings are errors: a link to nothing, a public type that is not exported.
  await promisify(execFile)(process.execPath, [
    typedoc,
    '--options',
    options,
    '--out',
    folder,
    '--json',
    json,
  ])
  const project: Declaration = JSON.parse(await readFile(json, 'utf8'))
  modules = project.children ?? []
}, 240_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the API reference', () => {
  it('has every entry point', () => {
    expect(modules.map(({ name }) => name).toSorted()).toEqual(ENTRY_POINTS.toSorted())
  })

  it('has a comment for each call of a client', () => {
    const declared = modules.find(({ name }) => name === 'rivulet')?.children ?? []
    const named = (name = '') => declared.find((declaration) => declaration.name === name)
    const isDocumented = ({ comment, signatures, type }: Declaration): boolean =>
      comment !== undefined ||
      (signatures ?? named(type?.name)?.signatures)?.every((form) => form.comment !== undefined) === true
    const areas = declared.filter(({ name }) => name === 'ResearchClient' || name.endsWith('Calls'))
    const calls = areas.flatMap(({ name, children = [] }) =>
      children.map((call) => ({ name: `${name}.${call.name}`, isDocumented: isDocumented(call) })),
    )

    expect(calls.length).toBeGreaterThan(50)
    expect(calls.filter((call) => !call.isDocumented).map(({ name }) => name)).toEqual([])
  })

  it.each(ENTRY_POINTS)('has every public value of %s', async (entryPoint) => {
    const values = Object.keys(await import(entryPoint))
    const documented = modules.find(({ name }) => name === entryPoint)?.children ?? []
    expect(values).not.toEqual([])
    expect(documented.map(({ name }) => name)).toEqual(expect.arrayContaining(values))
  })
})
