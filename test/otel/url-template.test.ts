import { expect, it } from 'vitest'
import { urlTemplate } from '../../src/otel/attributes.ts'
import { plain, rowsOf } from '../support/markdown-table.ts'

const endpoints = rowsOf('docs/reference/wire.md', 'Endpoint', 'All endpoints')
const paths = endpoints.flatMap(([endpoint]) => /\/v1\S+/.exec(plain(endpoint)) ?? [])

it('has a template for each endpoint of the interface, with no id', () => {
  expect(paths.length).toBeGreaterThan(15)
  for (const path of paths) {
    const template = urlTemplate(path.replaceAll(/\{\w+\}/g, 'an%2Fid'))
    expect(template?.replaceAll(/\{\w+\}/g, '{}')).toBe(path.replaceAll(/\{\w+\}/g, '{}'))
  }
})

it.each([
  ['/prefix/v1/monitors/m/events?after=c', '/v1/monitors/{monitor_id}/events'],
  ['/v1/monitors/', undefined],
  ['/v1/monitors/m/unknown', undefined],
  ['/v1/other', undefined],
  ['/v2/monitors', undefined],
  ['watch', undefined],
  ['', undefined],
])('of %s is %s', (path, template) => {
  expect(urlTemplate(path)).toBe(template)
})
