export { CODES, type Code } from './codes.ts'
export { type FieldError, Problem, type ProblemExtensions } from './problem.ts'
