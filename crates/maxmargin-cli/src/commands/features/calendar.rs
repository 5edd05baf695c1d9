//! The time of a game: a date as a number of days, or a plain number.

/// A calendar day, counted from 1970-01-01, or any number that grows with time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    Day(f64),
    Number(f64),
}

impl When {
    /// Reads a date such as 2024-05-31, 2024/5/31 or 2024.05.31, or a number. Text after a space or `T` is ignored.
    pub(super) fn parse(text: &[u8]) -> Option<When> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if let Ok(number) = text.parse::<f64>()
            && number.is_finite()
        {
            return Some(When::Number(number));
        }
        let date = text.split([' ', 'T']).next()?;
        let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
        let [year, month, day] = parts[..] else { return None };
        if year.len() != 4 || [month, day].iter().any(|part| part.is_empty() || part.len() > 2) {
            return None;
        }
        let (year, month, day) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        let known = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
        known.then(|| When::Day(day_number(year, month, day) as f64))
    }

    pub(super) fn value(self) -> f64 {
        match self {
            When::Day(value) | When::Number(value) => value,
        }
    }

    pub(super) fn same_kind(self, other: When) -> bool {
        matches!((self, other), (When::Day(_), When::Day(_)) | (When::Number(_), When::Number(_)))
    }

    /// An example of such a value, for messages.
    pub(super) fn example(self) -> &'static str {
        match self {
            When::Day(_) => "a date such as 2024-05-31",
            When::Number(_) => "a number",
        }
    }
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let of_year: i64 = (1..month).map(|month| days_of_month(year, month)).sum::<i64>() + day;
    before * 365 + leap_days + of_year - 719_163
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_six_centuries_follows_the_one_before() {
        let mut expected = day_number(1599, 12, 31);
        for year in 1600..2200 {
            for month in 1..=12 {
                for day in 1..=days_of_month(year, month) {
                    expected += 1;
                    assert_eq!(day_number(year, month, day), expected, "{year}-{month}-{day}");
                }
            }
        }
        assert_eq!(day_number(1970, 1, 1), 0);
        assert_eq!(day_number(2000, 3, 1), 11_017);
    }

    #[test]
    fn dates_and_numbers_are_read_and_the_rest_is_not() {
        for date in ["1970-01-02", "1970/1/2", "1970.01.02", "1970-01-02 15:30:00", "1970-01-02T15:30:00Z"] {
            assert_eq!(When::parse(date.as_bytes()), Some(When::Day(1.0)), "{date}");
        }
        assert_eq!(When::parse(b"-3.5"), Some(When::Number(-3.5)));
        for wrong in
            ["", "nan", "inf", "2024-02-30", "2023-02-29", "31.05.2024", "2024-13-01", "may", "2024-1", "2024-01-01-01"]
        {
            assert_eq!(When::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
