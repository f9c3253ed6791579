// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Parquet file of one table, as the crate `parquet` writes it.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::long_table::{ColumnType, Value};

pub(super) struct File<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> File<W> {
    /// One with these columns and no line yet.
    pub(super) fn new(columns: &[(&str, ColumnType)], out: W) -> io::Result<Self> {
        writer(columns, out).map(Self).map_err(io::Error::other)
    }

    /// Writes `lines`, whose fields are those of `columns`.
    pub(super) fn group(&mut self, columns: &[(&str, ColumnType)], lines: &[Vec<Value>]) -> io::Result<()> {
        group(&mut self.0, columns, lines).map_err(io::Error::other)
    }

    /// Writes its end.
    pub(super) fn close(self) -> io::Result<()> {
        self.0.close().map(drop).map_err(io::Error::other)
    }
}

fn writer<W: Write + Send>(
    columns: &[(&str, ColumnType)],
    out: W,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields: Result<Vec<_>, _> = columns.iter().map(|(name, kind)| field(name, *kind)).collect();
    let schema = Type::group_type_builder("doorbell").with_fields(fields?).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("doorbell ", env!("CARGO_PKG_VERSION")).to_owned());
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))
}

fn group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &[(&str, ColumnType)],
    lines: &[Vec<Value>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (index, (_, kind)) in columns.iter().enumerate() {
        let Some(mut column) = group.next_column()? else { break };
        let fields = || lines.iter().map(|line| &line[index]);
        // 1 where there is a value, 0 where there is none.
        let there: Vec<i16> = fields().map(|field| i16::from(*field != Value::Absent)).collect();
        match kind {
            ColumnType::Text => {
                let texts: Vec<ByteArray> = fields().filter_map(text).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, Some(&there), None)?;
            }
            ColumnType::Whole => {
                let numbers: Vec<i64> = fields().filter_map(whole).collect();
                column.typed::<Int64Type>().write_batch(&numbers, Some(&there), None)?;
            }
            ColumnType::Real => {
                let numbers: Vec<f64> = fields().filter_map(real).collect();
                column.typed::<DoubleType>().write_batch(&numbers, Some(&there), None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn field(name: &str, kind: ColumnType) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match kind {
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Whole => (Physical::INT64, None),
        ColumnType::Real => (Physical::DOUBLE, None),
    };
    let builder = Type::primitive_type_builder(name, physical);
    Ok(Arc::new(builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()?))
}

fn text(field: &Value) -> Option<ByteArray> {
    match field {
        Value::Absent => None,
        Value::Text(text) => Some(ByteArray::from(&**text)),
        number => Some(ByteArray::from(number.to_string().as_str())),
    }
}

fn whole(field: &Value) -> Option<i64> {
    match field {
        // Parquet's whole numbers have a sign; no count and no time since 1970 comes near its limit.
        Value::Whole(number) => Some(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Real(number) => Some(*number as i64),
        Value::Text(_) => Some(0),
        Value::Absent => None,
    }
}

fn real(field: &Value) -> Option<f64> {
    match field {
        Value::Whole(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        Value::Text(_) => Some(f64::NAN),
        Value::Absent => None,
    }
}
