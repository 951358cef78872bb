import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { nodeVersionProblem } from '../../src/cli/node-version.ts'

const { engines } = JSON.parse(readFileSync('package.json', 'utf8'))

describe('the version of Node', () => {
  it.each([
    ['>=22.19', '22.19.0', true],
    ['>=22.19', '22.18.9', false],
    ['>=22.19', '24.0.0-nightly', true],
    ['^22.22.3 || >=24.15', '22.22.3', true],
    ['^22.22.3 || >=24.15', '22.22.2', false],
    ['^22.22.3 || >=24.15', '23.9.0', false],
    ['^22.22.3 || >=24.15', '24.14.9', false],
    ['^22.22.3 || >=24.15', '26.0.0', true],
    ['>=22.22.3 <23 || >=24.15.0', '22.30.0', true],
    ['>=22.22.3 <23 || >=24.15.0', '23.0.0', false],
    ['*', '12.0.0', true],
  ])('satisfies %s or not: %s', (range, version, fits) => {
    expect(nodeVersionProblem(version, range) === undefined).toBe(fits)
  })

  it('is supported in the tests, but not with Node 20', () => {
    expect(nodeVersionProblem(process.versions.node, engines.node)).toBeUndefined()
    expect(nodeVersionProblem('20.20.2', engines.node)).toMatch(
      /^requires Node .+, but this is Node 20\.20\.2\.$/,
    )
  })
})
