import { readFileSync } from 'node:fs'
import Parallel from 'parallel-web'
import type { ClientOptions as SdkOptions } from 'parallel-web'
import * as sdkEntry from 'parallel-web'
import * as rivulet from 'rivulet'
import { createClient } from 'rivulet'
import { expect, it, describe } from 'vitest'
import { codeIn, rowsOf } from '../support/markdown-table.ts'

const PAGE = 'docs/guides/migrate-from-parallel-web.md'
const page = readFileSync(PAGE, 'utf8')
const named = (cell = '') => codeIn(cell).map((name) => name.replace(/^\./, ''))

/** The names of the methods of an object's class. */
function methodsOf(object: object): string[] {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor')
}

const sdk = new Parallel({ apiKey: 'key' })
const RESOURCES = {
  taskRun: sdk.taskRun,
  taskGroup: sdk.taskGroup,
  monitor: sdk.monitor,
  'beta.findall': sdk.beta.findall,
  'beta.memory': sdk.beta.memory,
}
/** The methods of the SDK's client that its users call, by its types; others are its insides. */
const OF_CLIENT = [
  'search',
  'extract',
  'get',
  'post',
  'put',
  'patch',
  'delete',
  'request',
  'withOptions',
] as const
const OF_PROMISE = ['asResponse', 'withResponse']

const OPTIONS = Object.keys({
  apiKey: true,
  baseURL: true,
  timeout: true,
  maxRetries: true,
  defaultHeaders: true,
  defaultQuery: true,
  fetch: true,
  fetchOptions: true,
  logger: true,
  logLevel: true,
} satisfies Record<keyof SdkOptions, true>)

const methods = rowsOf(PAGE, '`parallel-web`', 'All methods')
const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })

/** What `client.NAME` is; undefined for a method that there is not. */
function ofClient(name: string): unknown {
  return name.split('.').reduce<unknown>((value, part) => Object(value)[part], client)
}

describe('docs/guides/migrate-from-parallel-web.md', () => {
  it('maps each method of the installed SDK, and none that it does not have', () => {
    const ofResources = Object.entries(RESOURCES).flatMap(([prefix, resource]) =>
      methodsOf(resource).map((method) => `${prefix}.${method}`),
    )
    expect(methods.flatMap(([name]) => named(name)).toSorted()).toEqual(
      [...ofResources, ...OF_CLIENT, ...OF_PROMISE].toSorted(),
    )
    // A resource that a later version adds has the client in this field too.
    const resources = [
      ...Object.entries(sdk),
      ...Object.entries(sdk.beta).map(([name, value]) => [`beta.${name}`, value] as const),
    ]
      .filter(([name, value]) => name !== 'beta' && !name.endsWith('_client') && '_client' in Object(value))
      .map(([name]) => name)
    expect(resources.toSorted()).toEqual(Object.keys(RESOURCES).toSorted())
    expect(OF_CLIENT.filter((name) => typeof sdk[name] !== 'function')).toEqual([])
  })

  it('maps them to methods that the client has, with the same endpoint as in the table of all endpoints', () => {
    const endpoints = rowsOf('docs/reference/wire.md', 'Endpoint', 'All endpoints').map((cells) =>
      cells.map(named),
    )
    const own = methods.flatMap(([theirs = '', ours = '']) =>
      named(theirs).flatMap((name) =>
        named(ours).map((method) => ({ name, method: method.replace(/^client\./, '') })),
      ),
    )
    // They name no endpoint.
    const general = new Set<string>([...OF_CLIENT.slice(2), ...OF_PROMISE])
    const wrong = own.filter(({ name, method }) => {
      if (name === 'withOptions') return false
      if (typeof ofClient(method) !== 'function') return true
      // The SDK reads the runs of a group under /v1, the client under /v1beta.
      if (general.has(name) || name === 'taskGroup.getRuns') return false
      return !endpoints.some((cells) => cells[2]?.includes(method) && cells[4]?.includes(name))
    })

    expect(wrong).toEqual([])
    expect(own).toContainEqual({ name: 'taskRun.create', method: 'tasks.create' })
  })

  it('names methods of the client in its last column too', () => {
    const better = methods.flatMap(([, , text]) => named(text)).filter((name) => /^\w+\.\w+$/.test(name))

    expect(better.filter((name) => typeof ofClient(name) !== 'function')).toEqual([])
    expect(better).toContain('monitors.follow')
  })

  it('maps each option of its client, to options of ours', () => {
    const rows = rowsOf(PAGE, 'Option of `parallel-web`')

    expect(rows.flatMap(([name]) => named(name)).toSorted()).toEqual(OPTIONS.toSorted())
    for (const name of rows.flatMap(([, ours]) => named(ours)))
      expect(() =>
        createClient({ [name]: undefined, baseUrl: 'http://127.0.0.1:1', apiKey: 'key' }),
      ).not.toThrow()
  })

  it('maps each class of errors that it exports, to classes that this package exports', () => {
    const rows = rowsOf(PAGE, '`parallel-web`', 'Errors')
    const theirs = Object.entries(sdkEntry).flatMap(([name, value]) =>
      typeof value === 'function' && value.prototype instanceof Error ? [name] : [],
    )

    expect(rows.flatMap(([name]) => named(name)).toSorted()).toEqual(theirs.toSorted())
    const classes = rows.flatMap(([, ours]) => named(ours)).filter((name) => name.endsWith('Error'))
    expect(classes.filter((name) => !(name in rivulet))).toEqual([])
  })

  it('names the installed version', () => {
    const { version } = JSON.parse(readFileSync('node_modules/parallel-web/package.json', 'utf8'))

    expect(page).toContain(`\`parallel-web\` ${version}.`)
  })
})
