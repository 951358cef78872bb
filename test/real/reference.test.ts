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
  'rivulet/log',
  'rivulet/live',
  'rivulet/webhooks',
  'rivulet/log/sqlite',
  'rivulet/log/store',
  'rivulet/log/nats',
  'rivulet/otel',
  'rivulet/transport',
  'rivulet/react',
  'rivulet/rules',
  'rivulet/gateway',
  'rivulet/dashboard',
  'rivulet/service',
]
const PROJECT = resolve(import.meta.dirname, '../..')

/** A part of TypeDoc's JSON, by its `kind`. */
const KINDS = { module: 2, class: 128, interface: 256, property: 1024, method: 2048, alias: 2_097_152 }

interface Declaration {
  readonly id: number
  readonly name: string
  readonly kind: number
  readonly comment?: object
  readonly children?: readonly Declaration[]
  /** The forms of a call. */
  readonly signatures?: readonly Declaration[]
  readonly parameters?: readonly Declaration[]
  readonly type?: Type
}

interface Type {
  readonly type: string
  readonly name?: string
  /** The id of a declaration, or where one outside of the reference is. */
  readonly target?: unknown
  /** Those of a union or an intersection. */
  readonly types?: readonly Type[]
  readonly typeArguments?: readonly Type[]
  readonly declaration?: Declaration
}

/** The declarations of an entry point, those without an exported name too. */
function declarationsOf(module: Declaration | undefined): readonly Declaration[] {
  return (module?.children ?? []).flatMap((each) =>
    each.kind === KINDS.module ? declarationsOf(each) : [each],
  )
}

/** The members of a declaration that can be called or have such members, and those of its type. */
function membersOf({ children = [], type }: Declaration): readonly Declaration[] {
  return [...children, ...(type?.declaration === undefined ? [] : [type.declaration])]
}

/** The forms of all calls of a declaration and its members, with their paths. A constructor is not a call. */
function callsOf(
  declaration: Declaration,
  path: string,
): readonly (readonly [path: string, form: Declaration])[] {
  const members = membersOf(declaration).filter(({ name }) => name !== 'constructor')
  return [
    ...(declaration.signatures ?? []).map((form) => [path, form] as const),
    ...members.flatMap((member) =>
      callsOf(member, member.name === '__type' ? path : `${path}.${member.name}`),
    ),
  ]
}

/** The properties of a type, through references, unions and types such as `Partial`. */
function propertiesOf(
  type: Type | undefined,
  named: ReadonlyMap<unknown, Declaration>,
): readonly Declaration[] {
  if (type === undefined) return []
  const referred = type.type === 'reference' ? named.get(type.target) : type.declaration
  const isOfArgument = type.type === 'reference' && /^(?:Partial|Readonly|Pick|Omit)$/.test(type.name ?? '')
  return [
    ...(referred?.children ?? []),
    ...(referred?.kind === KINDS.alias ? propertiesOf(referred.type, named) : []),
    ...(type.types ?? []).flatMap((each) => propertiesOf(each, named)),
    ...(isOfArgument ? (type.typeArguments ?? []).flatMap((each) => propertiesOf(each, named)) : []),
  ]
}

/** Whether it has a doc comment, or each of its forms has. */
function isDocumented({ comment, signatures, type }: Declaration): boolean {
  const forms = signatures ?? type?.declaration?.signatures ?? []
  return comment !== undefined || (forms.length > 0 && forms.every((form) => form.comment !== undefined))
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
}, 600_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the API reference', () => {
  it('has every entry point', () => {
    expect(modules.map(({ name }) => name).toSorted()).toEqual(ENTRY_POINTS.toSorted())
  })

  it('has a comment for each call of a client', () => {
    const declared = declarationsOf(modules.find(({ name }) => name === 'rivulet'))
    const named = (name = '') => declared.find((declaration) => declaration.name === name)
    const areas = declared.filter(
      ({ kind, name }) => kind === KINDS.interface && (name === 'ResearchClient' || name.endsWith('Calls')),
    )
    const calls = areas.flatMap(({ name, children = [] }) =>
      children.map((call) => ({
        name: `${name}.${call.name}`,
        isDocumented: isDocumented(call) || isDocumented(named(call.type?.name) ?? call),
      })),
    )

    expect(calls.length).toBeGreaterThan(50)
    expect(calls.filter((call) => !call.isDocumented).map(({ name }) => name)).toEqual([])
  })

  it('has a comment for each option of each call', () => {
    const named = new Map(modules.flatMap(declarationsOf).map((each) => [each.id, each]))
    const options = [...named.values()]
      .flatMap((declaration) => callsOf(declaration, declaration.name))
      .flatMap(([path, { parameters = [] }]) =>
        parameters
          .filter(({ name }) => /^(?:__namedParameters|\w*(?:options|settings|config))$/i.test(name))
          .flatMap(({ type }) => propertiesOf(type, named))
          .map((option) => ({ name: `${path}: ${option.name}`, isDocumented: isDocumented(option) })),
      )
    const names = options.map(({ name }) => name)

    expect(new Set(options.filter((option) => !option.isDocumented).map(({ name }) => name))).toEqual(
      new Set(),
    )
    expect(names).toEqual(
      expect.arrayContaining(['MonitorCalls.follow: pollInterval', 'deliver: highWaterMark']),
    )
    expect(names).toEqual(expect.arrayContaining(['mergeWebhooks: expandRun', 'openLog: retention']))
  })

  it.each(ENTRY_POINTS)('has every public value of %s', async (entryPoint) => {
    const values = Object.keys(await import(entryPoint))
    const documented = modules.find(({ name }) => name === entryPoint)?.children ?? []
    expect(values).not.toEqual([])
    expect(documented.map(({ name }) => name)).toEqual(expect.arrayContaining(values))
  })
})
