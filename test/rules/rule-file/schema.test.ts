import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { loadRules } from 'rivulet/rules'
import type { RuleFile } from 'rivulet/rules'
import { describe, expect, expectTypeOf, it } from 'vitest'
import type { ruleFileSchema } from '../../../src/rules/rule-file/schema.ts'
import { ruleFileJsonSchema } from '../../../src/rules/rule-file/schema.ts'

/** The same type without intersections, and with all of its properties readonly. */
type Plain<T> = T extends string | number | boolean | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Plain<Item>[]
    : { readonly [Name in keyof T]: Plain<T[Name]> }

describe('the schema of rule files', () => {
  it('has exactly the properties of the TypeScript types', () => {
    expectTypeOf<Plain<z.output<typeof ruleFileSchema>>>().toEqualTypeOf<Plain<RuleFile>>()
  })

  it('is the JSON Schema that is published', async () => {
    const published = JSON.parse(
      readFileSync(new URL(import.meta.resolve('rivulet/rules.schema.json')), 'utf8'),
    )

    expect(published, 'npm run rules-schema writes it').toEqual(
      JSON.parse(JSON.stringify(ruleFileJsonSchema())),
    )
  })

  it('describes each property for editors', () => {
    const without: string[] = []
    const walk = (schema: unknown, path: string) => {
      if (typeof schema !== 'object' || schema === null) return
      if ('properties' in schema)
        for (const [name, property] of Object.entries(Object(schema.properties))) {
          if (typeof Object(property).description !== 'string') without.push(`${path}.${name}`)
          walk(property, `${path}.${name}`)
        }
      if ('items' in schema) walk(schema.items, `${path}[]`)
    }
    walk(ruleFileJsonSchema(), '')

    expect(without).toEqual([])
  })
})

describe('the rules of examples/rules', () => {
  it('are thirteen, and have no problem', async () => {
    expect((await loadRules('examples/rules/*.yaml')).size).toBe(13)
  })
})
