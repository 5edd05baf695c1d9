//! Errors of the core as exceptions.

use crate::dialect::Arguments;
use maxmargin::error::{Code, Error};
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    maxmargin,
    MaxmarginError,
    PyValueError,
    "What is wrong with data, settings or a model.

`code` is stable and `maxmargin explain CODE` says more; `remedy` says what to do.

Examples
--------
>>> from maxmargin import MaxmarginError, Model
>>> try:
...     Model.from_bytes(b'no model')
... except MaxmarginError as error:
...     print(error.code)
MM0501
"
);

/// The exception for an error.
pub(crate) fn exception(error: &Error) -> PyErr {
    let reading = error.code().to_string().starts_with("MM02");
    let dialect = Arguments { reading };
    let message = error.in_words(&dialect);
    match error.code() {
        Code::FileNotFound => PyFileNotFoundError::new_err(message),
        Code::FileUnreadable | Code::WriteFailed | Code::OutputUnwritable | Code::FileShrank => {
            PyOSError::new_err(message)
        }
        Code::Interrupted => PyKeyboardInterrupt::new_err(message),
        Code::MemoryBudget => PyMemoryError::new_err(message),
        Code::Internal => PyRuntimeError::new_err(message),
        code => Python::attach(|py| {
            let exception = MaxmarginError::new_err(message);
            let value = exception.value(py);
            let remedy = error.remedy_in(&dialect);
            match value.setattr("code", code.to_string()).and_then(|()| value.setattr("remedy", remedy)) {
                Ok(()) => exception,
                Err(other) => other,
            }
        }),
    }
}

/// For `?` in functions that Python calls.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for maxmargin::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
