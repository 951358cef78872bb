/** A schema of any library that follows Standard Schema, version 1 (https://standardschema.dev): zod, valibot, arktype and others. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    /** Validates a value. May be asynchronous, and may return a transformed value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** Types, for the compiler only. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

/** The result of a validation. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One problem of a value. */
export interface StandardIssue {
  readonly message: string
  /** The path to it within the value, from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** A schema that converts itself to JSON Schema: Standard JSON Schema, version 1, which zod has since 4.2. */
interface StandardJsonSchema {
  readonly '~standard': {
    readonly jsonSchema: {
      /** The JSON Schema of the schema's input. Throws if there is none. */
      readonly input: (options: {
        /** The dialect, such as `draft-2020-12`. */
        readonly target: string
      }) => Readonly<Record<string, unknown>>
    }
  }
}

/** The schema of an answer: one that converts itself to JSON Schema, or any Standard Schema together with its JSON Schema. */
export type AnswerSchema<Content> =
  | (StandardSchema<Content> & StandardJsonSchema)
  | {
      readonly schema: StandardSchema<Content>
      readonly jsonSchema: Readonly<Record<string, unknown>>
    }
